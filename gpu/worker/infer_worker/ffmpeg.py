"""Runs ffmpeg: which files it may read, what its errors are."""

import re
import subprocess
import threading
from typing import IO

from .errors import EngineError, invalid

# Formats that contain the media themselves. Playlists are excluded because they refer to other files.
CONTAINERS = 'mov,mp4,matroska,webm,avi,mpegts,mp3,wav,flac,ogg,aac,asf,flv,caf,aiff'

COMMON = ('-hide_banner', '-nostdin', '-v', 'error', '-y')
ERROR_BYTES = 600


def from_file(path: str) -> list[str]:
    return ['-protocol_whitelist', 'file,pipe', '-format_whitelist', CONTAINERS, '-i', f'file:{path}']


def start(program: str, arguments: list[str], threads: int, stdin: int | None = None) -> subprocess.Popen:
    """Starts ffmpeg with a pipe for its output. Raises EngineError with advice if it is not installed."""
    limits = ['-threads', str(threads), '-filter_threads', str(threads)]
    try:
        return subprocess.Popen(
            [program, *COMMON, *limits, *arguments],
            stdin=stdin or subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise invalid(
            f"Video tasks need the program ffmpeg, and '{program}' cannot be started: {error.strerror}. "
            'Install it (apt install ffmpeg) or give its path with --ffmpeg.',
            'unsupported_task',
        ) from None


def finish(process: subprocess.Popen, errors: 'Tail') -> None:
    """Waits for the end. Raises EngineError 500 if it failed."""
    if process.wait() != 0:
        raise EngineError(500, f'ffmpeg exited with {process.returncode}: {errors.text()}')


class Tail:
    """Reads the error output in a thread, so that ffmpeg never waits for a reader, and keeps its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._end = b''
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while piece := stream.read1(4096):
                self._end = (self._end + piece)[-ERROR_BYTES:]

    def text(self) -> str:
        self._thread.join()
        return self._end.decode(errors='replace').strip()


def frame_rate(program: str, path: str) -> float:
    """Frames per second of a video. Raises EngineError 400 for a file without video."""
    probe = subprocess.run(
        [program, '-hide_banner', '-nostdin', *from_file(path)], capture_output=True, check=False, timeout=60
    )
    rate = rate_in(probe.stderr.decode(errors='replace'))
    if rate is None:
        raise invalid('The video cannot be decoded.', 'invalid_video')
    return rate


def rate_in(description: str) -> float | None:
    """The frame rate in ffmpeg's description of a file, which rounds that of NTSC to two digits."""
    found = re.search(r'Video:.*?([\d.]+)(k?) fps', description)
    if not found or float(found[1]) == 0:
        return None
    rate = float(found[1]) * (1000 if found[2] else 1)
    ntsc = round(rate) * 1000 / 1001
    return ntsc if abs(rate - ntsc) < 0.006 and rate != round(rate) else rate
