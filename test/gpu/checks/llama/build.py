"""
Builds llama.cpp's CUDA backend for the card of this machine, and llama-server with it, from the sources that
bin/llama-sources.ts packs and the libraries that the executable carries.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from dataclasses import dataclass

from llama import toolkit

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "@node-llama-cpp/linux-x64"
ERROR_LINE = re.compile(r"\berror\b|undefined reference|CMake Error|fatal", re.IGNORECASE)


class BuildFailed(Exception):
    """One sentence that names what failed. `log` is the end of the output of that step."""

    def __init__(self, sentence, log=""):
        super().__init__(sentence)
        self.log = log


@dataclass(frozen=True)
class Build:
    """
    `backends` is a folder for INFER_BACKENDS_DIR, `server` the program llama-server, `environment` what both need beside
    the usual environment. `seconds` has the seconds of each step, `architecture` the CUDA architecture.
    """

    backends: str
    server: str
    environment: dict
    seconds: dict
    architecture: str


def extracted_package(infer, environment, seconds=120):
    """The folder of the npm package with llama.cpp's libraries, which the executable extracts on first use."""
    cache = environment["INFER_CACHE_DIR"]
    _run([infer, "engine", "try", "--gpu", "off"], environment, seconds, "The built-in engine does not start here")
    for folder, names, _ in os.walk(cache):
        if folder.endswith(f"/node_modules/{PACKAGE}") and "bins" in names:
            return folder
    raise BuildFailed(f"The executable has extracted no {PACKAGE} below {cache}.")


def build_llama(sources, package, work, seconds, environment=None, architecture=None):
    """
    Compiles within `seconds`; `work` is an empty folder. `package` is what `extracted_package` returned. Raises
    BuildFailed when a step fails or the time is up, toolkit.Missing when a tool is not installed.
    """
    environment = dict(os.environ if environment is None else environment)
    end = time.monotonic() + seconds
    took = {}
    began = time.monotonic()
    found = toolkit.find_toolkit(environment)
    architecture = architecture or toolkit.architecture(environment)
    unpacked = os.path.join(work, "sources")
    _unpack(sources, unpacked)
    took["unpack"] = time.monotonic() - began

    libraries = os.path.join(package, "bins", "linux-x64")
    output = os.path.join(work, "build")
    configure = [
        found.cmake, "-S", HERE, "-B", output, *found.generator, "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CUDA_COMPILER={found.nvcc}", f"-DCMAKE_CUDA_ARCHITECTURES={architecture}",
        f"-DCUDA_INCLUDES={';'.join(found.includes)}", f"-DCUDA_LIBRARIES={found.cudart};{found.cublas}",
        f"-DLLAMA_SOURCES={unpacked}", f"-DLLAMA_LIBRARIES={libraries}",
    ]  # fmt: skip
    compile_all = [found.cmake, "--build", output, "--parallel", str(os.cpu_count() or 2)]
    for step, argv, what in (
        ("configure", configure, "cmake cannot configure the build of llama.cpp"),
        ("compile", compile_all, "llama.cpp does not compile"),
    ):
        began = time.monotonic()
        _run(argv, environment, end - began, what)
        took[step] = time.monotonic() - began

    began = time.monotonic()
    backends = os.path.join(work, "backends")
    place_backend(backends, package, os.path.join(output, "libggml-cuda.so"))
    server = place_server(os.path.join(work, "server"), backends, os.path.join(output, "llama-server"))
    runtime = os.path.join(work, "cuda")
    toolkit.link_libraries(found, runtime)
    took["install"] = time.monotonic() - began
    path = ":".join(part for part in (runtime, environment.get("LD_LIBRARY_PATH")) if part)
    return Build(backends, server, {"LD_LIBRARY_PATH": path}, took, architecture)


def _unpack(sources, target):
    try:
        with tarfile.open(sources) as archive:
            archive.extractall(target, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    except (OSError, tarfile.TarError) as error:
        raise BuildFailed(f"The sources of llama.cpp cannot be unpacked: {error}.") from error


def _run(argv, environment, seconds, what):
    """Runs one step. All that it started ends with it, at the latest after `seconds`."""
    if seconds <= 0:
        raise BuildFailed(f"{what}: no time is left for it.")
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BuildFailed(f"{what}: {error}.") from error
    try:
        log, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        log = _end(process)
        raise BuildFailed(f"{what} within {seconds:.0f} s{_progress(log)}.", log[-4000:]) from None
    if process.returncode != 0:
        raise BuildFailed(f"{what}: {_reason(log) or f'exit status {process.returncode}'}", log[-4000:])
    return log


def _end(process):
    """Returns the output. SIGTERM first: ninja's compilers have process groups of their own, and only ninja ends them."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.communicate(timeout=10)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def _progress(log):
    """How far the compiler came: `, 80 of 147 steps done`."""
    steps = re.findall(r"^\[\s*(\d+)(?:/(\d+)\]|%\])", log, re.MULTILINE)
    if not steps:
        return ""
    done, total = steps[-1]
    return f", {done} of {total} steps done" if total else f", {done} % done"


def _reason(log):
    """The first line that speaks of an error, or the last line."""
    lines = [" ".join(line.split()) for line in log.splitlines() if line.strip()]
    return next((line for line in lines if ERROR_LINE.search(line)), lines[-1] if lines else "")[:300]


def place_backend(folder, package, library):
    """
    The npm package @node-llama-cpp/linux-x64-cuda below `folder`, made of the package for processors and the backend. The
    libraries are copied, because the addon looks for the backend where it really is. Nobody else may write to it.
    """
    target = os.path.join(folder, "node_modules", f"{PACKAGE}-cuda")
    bins = os.path.join(target, "bins", "linux-x64-cuda")
    shutil.copytree(os.path.join(package, "bins", "linux-x64"), bins, copy_function=shutil.copyfile)
    shutil.copytree(os.path.join(package, "dist"), os.path.join(target, "dist"), copy_function=shutil.copyfile)
    shutil.copyfile(library, os.path.join(bins, "libggml-cuda.so"))
    _rewrite(os.path.join(package, "package.json"), os.path.join(target, "package.json"), name=f"{PACKAGE}-cuda")
    metadata = os.path.join(bins, "_nlcBuildMetadata.json")
    with open(metadata, encoding="utf-8") as file:
        options = json.load(file)["buildOptions"]
    _rewrite(metadata, metadata, buildOptions={**options, "gpu": "cuda"})
    for path, _, names in os.walk(folder):
        os.chmod(path, 0o755)
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)


def _rewrite(source, target, **changes):
    with open(source, encoding="utf-8") as file:
        content = json.load(file)
    with open(target, "w", encoding="utf-8") as file:
        json.dump({**content, **changes}, file)


def place_server(folder, backends, program):
    """llama-server beside links to the same libraries that the built-in engine uses. Returns its path."""
    bins = os.path.join(backends, "node_modules", f"{PACKAGE}-cuda", "bins", "linux-x64-cuda")
    os.makedirs(folder)
    for name in os.listdir(bins):
        if name.endswith(".so"):
            os.symlink(os.path.join(bins, name), os.path.join(folder, name))
    target = os.path.join(folder, "llama-server")
    shutil.copyfile(program, target)
    os.chmod(target, 0o755)
    return target
