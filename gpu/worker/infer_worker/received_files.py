"""Files in requests and answers, for engines that share no folder with infer."""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from .errors import Cancelled, invalid

FILES_TYPE = 'application/vnd.infer.files'
"""A line of JSON, and then the bytes of the files that it names, one after another with nothing between them."""

HEAD_LIMIT = 1 << 20
FILES_LIMIT = 4 << 30
PIECE = 1 << 18
PLAIN = re.compile(r'[A-Za-z0-9][\w.-]*', re.ASCII)


@dataclass(frozen=True)
class ReceivedFiles:
    """The files of a request, in a folder that is removed with the block of `receive_files`."""

    folder: str

    @property
    def inputs(self) -> str:
        return os.path.join(self.folder, 'in')

    @property
    def outputs(self) -> str:
        """An empty folder for the files of the answer."""
        return os.path.join(self.folder, 'out')


@contextmanager
def receive_files(source: BinaryIO, length: int, parent: str | None) -> Iterator[tuple[bytes, ReceivedFiles]]:
    """Reads a body of `length` bytes: its line of JSON, and its files. Raises EngineError 400, or Cancelled."""
    head = source.readline(HEAD_LIMIT + 1)
    if not head.endswith(b'\n'):
        raise invalid(f'The body must begin with a line of at most {HEAD_LIMIT} bytes.')
    files = _files_of(head, length - len(head))
    with tempfile.TemporaryDirectory(prefix='call-', dir=parent, ignore_cleanup_errors=True) as folder:
        received = ReceivedFiles(folder)
        for within in (received.inputs, received.outputs):
            os.mkdir(within)
        for name, size in files:
            with open(os.path.join(received.inputs, name), 'xb') as target:
                _copy(source, target, size)
        yield head, received


def _files_of(head: bytes, rest: int) -> list[tuple[str, int]]:
    try:
        files = [(file['name'], file['bytes']) for file in json.loads(head)['files']]
    except (ValueError, TypeError, KeyError):
        raise invalid("The line before the files must be JSON with 'files', each with 'name' and 'bytes'.") from None
    for name, size in files:
        if not isinstance(name, str) or not PLAIN.fullmatch(name):
            raise invalid(f"'{name}' is not a plain file name.")
        if not isinstance(size, int) or size < 1:
            raise invalid(f"'bytes' of '{name}' must be a whole number above 0.")
    if len({name for name, _ in files}) < len(files):
        raise invalid('Two files have the same name.')
    total = sum(size for _, size in files)
    if total > FILES_LIMIT:
        raise invalid(f'The files have {total} bytes; at most {FILES_LIMIT} are allowed.')
    if total != rest:
        raise invalid(f"'files' has {total} bytes, and {rest} follow.")
    return files


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> None:
    while size > 0:
        piece = source.read(min(size, PIECE))
        if not piece:
            raise Cancelled
        target.write(piece)
        size -= len(piece)
