"""The protocol of engines that write files: POST /v1/generate, answered by JSON Lines."""

import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import Cancelled, EngineError, invalid
from .received_files import FILES_TYPE
from .server import Handle, Reply, Request

ALMOST = 0.999
"""Progress before the file is complete."""


@dataclass(frozen=True)
class Call:
    task: str
    inputs: dict[str, Any]
    folder: str
    cancelled: Any
    """Set once the caller has disconnected."""
    progress: Callable[[float], None]
    log: Callable[[str, str], None]
    preview: Callable[[int, str], None]
    """Sends an unfinished image: its position, and PNG in base64."""

    def check(self) -> None:
        """Raises Cancelled once the caller has disconnected."""
        if self.cancelled.is_set():
            raise Cancelled

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)


Run = Callable[[Call], list[dict[str, str]]]
"""Runs a call and returns the files that it wrote: `{'name': …, 'kind': …}`. Raises EngineError, or Cancelled."""


def generation(tasks: tuple[str, ...], run: Run) -> dict[str, Handle]:
    """The route of an engine that does some tasks."""

    def handle(request: Request, reply: Reply) -> None:
        body = request.json()
        task, inputs, folder = body.get('task'), body.get('inputs'), body.get('folder')
        received = request.files
        if task not in tasks:
            raise invalid(f"This engine does {', '.join(tasks)}, not '{task}'.", 'unsupported_task')
        if received and isinstance(inputs, dict):
            inputs, folder = located(inputs, received.inputs), received.outputs
        if not isinstance(inputs, dict) or not isinstance(folder, str):
            raise invalid("'inputs' must be an object and 'folder' a path.")
        reply.begin(FILES_TYPE if received else 'application/x-ndjson')

        def progress(fraction: float) -> None:
            reply.line({'type': 'progress', 'fraction': min(1.0, max(0.0, fraction))})

        def log(level: str, message: str) -> None:
            reply.line({'type': 'log', 'level': level, 'message': message[:4096]})

        def preview(image: int, data: str) -> None:
            reply.line({'type': 'preview', 'image': image, 'data': data})

        progress(0)
        try:
            files = run(Call(task, inputs, folder, request.cancelled, progress, log, preview))
        except Cancelled:
            raise
        except Exception as error:  # noqa: BLE001: whatever a library raises is one failed call
            known = error if isinstance(error, EngineError) else EngineError(500, f'{type(error).__name__}: {error}')
            if known.status >= 500:
                traceback.print_exception(error, file=sys.stderr)
            reply.line({'type': 'failed', 'error': {'message': known.message[:4096], 'invalid': known.status < 500}})
        else:
            progress(1)
            paths = [os.path.join(folder, file['name']) for file in files]
            if received:
                files = [{**file, 'bytes': os.path.getsize(path)} for file, path in zip(files, paths, strict=True)]
            reply.line({'type': 'completed', 'files': files, 'seed_used': int(inputs.get('seed') or 0)})
            for path in paths if received else []:
                reply.file(path)
        reply.end()

    return {'POST /v1/generate': handle}


def located(inputs: dict[str, Any], folder: str) -> dict[str, Any]:
    """The inputs with the paths of files that they name. Raises EngineError 400 for one that has not come."""
    names = set(os.listdir(folder))

    def path(name: str) -> str:
        if name not in names:
            raise invalid(f"The file '{name}' of the inputs is not in 'files'.")
        return os.path.join(folder, name)

    found = {field: path(inputs[field]) for field in ('image', 'mask', 'video', 'audio') if inputs.get(field) is not None}
    if inputs.get('images'):
        found['images'] = [path(name) for name in inputs['images']]
    return {**inputs, **found}
