"""Finds CUDA's compiler, headers and libraries, cmake, and the architecture of the card."""

import ctypes
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass


class Missing(Exception):
    """One sentence about what is not installed."""


@dataclass(frozen=True)
class Toolkit:
    """Paths. `includes` are folders of headers that nvcc does not know by itself, `generator` arguments for cmake."""

    nvcc: str
    cmake: str
    generator: tuple
    includes: tuple
    cudart: str
    cublas: str
    cublas_lt: str


def find_toolkit(environment):
    # Python packages of cmake and ninja put their programs beside the interpreter.
    beside = os.path.dirname(sys.executable)
    cmake = program("cmake", environment, "cmake is not installed; llama.cpp cannot be built.", [beside])
    homes = [home for home in (environment.get("CUDA_HOME"), environment.get("CUDA_PATH"), "/usr/local/cuda") if home]
    missing = "CUDA's compiler (nvcc) is not installed; llama.cpp cannot be built."
    nvcc = program("nvcc", environment, missing, [os.path.join(home, "bin") for home in homes])
    major = cuda_major(nvcc, environment)
    homes = [os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), *homes]
    folders = [folder for home in homes for folder in (home, os.path.join(home, "targets", "x86_64-linux"))]
    folders += python_packages(major)
    header = next((folder for folder in folders if os.path.exists(f"{folder}/include/cublas_v2.h")), None)
    if header is None:
        raise Missing(f"The header cublas_v2.h of CUDA {major} is not installed; llama.cpp cannot be built.")
    libraries = [library(f"{name}.so.{major}", folders, environment) for name in ("libcudart", "libcublas", "libcublasLt")]
    ninja = found_program("ninja", environment, [beside])
    generator = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}") if ninja else ("-G", "Unix Makefiles")
    return Toolkit(nvcc, cmake, generator, (f"{header}/include",), *libraries)


def found_program(name, environment, places=()):
    return shutil.which(name, path=os.pathsep.join([environment.get("PATH", os.defpath), *places]))


def program(name, environment, missing, places=()):
    path = found_program(name, environment, places)
    if path is None:
        raise Missing(missing)
    return path


def cuda_major(nvcc, environment):
    text = output([nvcc, "--version"], environment)
    found = re.search(r"release (\d+)\.", text)
    if not found:
        raise Missing(f"{nvcc} does not tell its version: {text[:200]}")
    return found[1]


def python_packages(major):
    """Folders of CUDA's parts among Python's packages, which PyTorch brings along."""
    roots = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path])
    found = [os.path.join(root, "nvidia", f"cu{major}") for root in roots if root]
    return [folder for folder in found if os.path.isdir(folder)]


def library(name, folders, environment):
    candidates = [os.path.join(folder, part, name) for folder in folders for part in ("lib64", "lib")]
    candidates += [os.path.join(part, name) for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    candidates += glob.glob(f"/usr/lib/x86_64-linux-gnu/{name}") + glob.glob(f"/usr/lib64/{name}")
    for path in candidates:
        if os.path.exists(path):
            return path
    raise Missing(f"{name} is not installed; llama.cpp cannot be built.")


def architecture(environment):
    """For CMake: `90-real` for a card of compute capability 9.0. Cards of the generation 12 need their own variant."""
    text = output(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], environment)
    found = re.match(r"(\d+)\.(\d)", text)
    if not found:
        raise Missing(f"nvidia-smi does not tell the compute capability of the card: {text[:200] or 'no output'}")
    number = found[1] + found[2]
    return f"{number}a-real" if found[1] == "12" else f"{number}-real"


def output(argv, environment):
    try:
        run = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=60, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{argv[0]} cannot be run: {error}.") from error
    return " ".join((run.stdout or run.stderr).split())


def link_libraries(found, folder):
    """
    Links to CUDA's and the driver's libraries in one folder, for LD_LIBRARY_PATH: node-llama-cpp looks for them there,
    in /usr/lib and below /usr/local/cuda-* only.
    """
    os.makedirs(folder)
    libraries = {os.path.basename(path): path for path in (found.cudart, found.cublas, found.cublas_lt)}
    libraries.update({name: loaded_from(name) for name in ("libcuda.so.1", "libnvidia-ml.so.1")})
    for name, path in libraries.items():
        if path is not None:
            os.symlink(os.path.abspath(path), os.path.join(folder, name))


def loaded_from(name):
    """Where the system's loader finds a library; None when it does not."""
    try:
        ctypes.CDLL(name)
    except OSError:
        return None
    stem = name.split(".so")[0]
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = [line.split(maxsplit=5)[5].strip() for line in file if f"/{stem}.so" in line]
    return paths[0] if paths else None
