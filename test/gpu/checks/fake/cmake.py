"""cmake for tests: creates the files of a build of llama.cpp without compiling. Fails if the file `faults` says so."""

import os
import sys
import time

FOLDER = os.environ["INFER_FAKE_CARD"]
HERE = os.path.dirname(os.path.abspath(__file__))


def faults():
    try:
        with open(os.path.join(FOLDER, "faults"), encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def main(arguments):
    if "--build" not in arguments:
        if "configure-fails" in faults():
            print("CMake Error at CMakeLists.txt:11 (project):\n  The CUDA compiler is not able to compile a simple test program.")
            return 1
        settings = dict(argument[2:].split("=", 1) for argument in arguments if argument.startswith("-D"))
        print(f"-- sources {sorted(os.listdir(settings['LLAMA_SOURCES']))} for {settings['CMAKE_CUDA_ARCHITECTURES']}")
        os.makedirs(arguments[arguments.index("-B") + 1])
        return 0
    print("[1/147] Building CUDA object ggml-cuda.cu.o", flush=True)
    if "compile-hangs" in faults():
        time.sleep(600)
    if "compile-fails" in faults():
        print("common.cuh(7): error: identifier \"cudaGraph_t\" is undefined\nninja: build stopped: subcommand failed.")
        return 1
    output = arguments[arguments.index("--build") + 1]
    with open(os.path.join(output, "libggml-cuda.so"), "wb"):
        pass
    with open(os.path.join(output, "llama-server"), "w", encoding="utf-8") as file:
        server = os.path.join(HERE, "llama_server.py")
        file.write(f'#!/bin/sh\nINFER_FAKE_CARD={FOLDER} exec {sys.executable} {server} "$@"\n')
    return 0


sys.exit(main(sys.argv[1:]))
