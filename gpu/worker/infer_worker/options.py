"""Command line of the worker."""

import argparse
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How one model is run. The preset `python` writes the command line."""

    model: str
    """Path of the model: a folder or a file."""
    id: str
    tasks: tuple[str, ...]
    """Tasks as infer names them: `slug/text-to-image`, `std/audio-speech`, …"""
    socket: str | None
    port: int | None
    threads: int
    device: str
    """`cuda` or `cpu`."""
    memory: int | None
    """The most bytes of device memory that the process may use; None without a limit."""
    dtype: str
    """`auto`, `float32`, `bfloat16` or `float16`."""
    quantization: str | None
    offload: str
    """`auto`, `none`, `model` or `sequential`: which parts wait in the memory of the host."""
    loras: tuple[str, ...]
    """LoRA files, each with its weight: `/models/style.safetensors=0.8`."""
    compile: bool
    ffmpeg: str
    folder: str | None
    """Where the files of calls that bring some are kept, from INFER_ENGINE_FOLDER; None: with temporary files."""
    key: str | None
    """Bearer token of requests, from the environment variable INFER_ENGINE_KEY."""


def read_options(arguments: list[str]) -> Options:
    """Parses the command line. Exits with a message for wrong arguments."""
    parser = argparse.ArgumentParser(prog='infer_worker', description=__doc__)
    parser.add_argument('--model', required=True)
    parser.add_argument('--id', required=True)
    parser.add_argument('--task', dest='tasks', action='append', required=True)
    address = parser.add_mutually_exclusive_group(required=True)
    address.add_argument('--socket')
    address.add_argument('--port', type=int)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--device', choices=['cuda', 'cpu'], default='cpu')
    parser.add_argument('--memory', type=int)
    parser.add_argument('--dtype', choices=['auto', 'float32', 'bfloat16', 'float16'], default='auto')
    parser.add_argument('--quantization')
    parser.add_argument('--offload', choices=['auto', 'none', 'model', 'sequential'], default='auto')
    parser.add_argument('--lora', dest='loras', action='append', default=[])
    parser.add_argument('--compile', action='store_true')
    parser.add_argument('--ffmpeg', default='ffmpeg')
    fields = vars(parser.parse_args(arguments))
    fields['tasks'] = tuple(fields['tasks'])
    fields['loras'] = tuple(fields['loras'])
    environment = os.environ
    return Options(**fields, folder=environment.get('INFER_ENGINE_FOLDER'), key=environment.get('INFER_ENGINE_KEY'))
