"""Reads and writes videos frame by frame through ffmpeg. Frames are rgb24 bytes; only one is in memory at a time."""

import subprocess
from collections.abc import Iterator

from .errors import EngineError
from .ffmpeg import Tail, finish, from_file, start


class VideoReader:
    """The frames of a video at a constant rate and a given size."""

    def __init__(self, ffmpeg: str, path: str, width: int, height: int, fps: float, threads: int = 1) -> None:
        self.size = width * height * 3
        arguments = [*from_file(path), '-map', '0:v:0', '-vf', f'fps={fps},scale={width}:{height}']
        self._process = start(ffmpeg, [*arguments, '-f', 'rawvideo', '-pix_fmt', 'rgb24', 'pipe:1'], threads)
        self._errors = Tail(self._process.stderr)

    def __enter__(self) -> 'VideoReader':
        return self

    def __exit__(self, *_reason: object) -> None:
        """Ends ffmpeg also before the last frame."""
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def frames(self) -> Iterator[bytes]:
        """Raises EngineError for a video that cannot be decoded."""
        while len(frame := self._process.stdout.read(self.size)) == self.size:
            yield frame
        finish(self._process, self._errors)


class VideoWriter:
    """An mp4 file, playable before it is complete, with the audio track of another file if one is given."""

    def __init__(
        self,
        ffmpeg: str,
        path: str,
        width: int,
        height: int,
        fps: float,
        audio: str | None = None,
        seconds: float | None = None,
        threads: int = 1,
    ) -> None:
        """`audio` is a file, perhaps without an audio track, and `seconds` the most of it."""
        if width % 2 or height % 2:
            raise EngineError(500, f'H.264 needs even sides, not {width} × {height}.')
        self._path = path
        video = ['-f', 'rawvideo', '-pix_fmt', 'rgb24', '-s', f'{width}x{height}', '-r', str(fps), '-i', 'pipe:0']
        limit = [] if seconds is None else ['-t', f'{seconds:.6f}']
        sound = [] if audio is None else [*limit, *from_file(audio), '-map', '0:v:0', '-map', '1:a:0?', '-c:a', 'aac']
        encoder = ['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '20', '-pix_fmt', 'yuv420p']
        output = ['-map_metadata', '-1', '-movflags', '+faststart', '-f', 'mp4', f'file:{path}']
        self._process = start(ffmpeg, [*video, *sound, *encoder, *output], threads, subprocess.PIPE)
        self._errors = Tail(self._process.stderr)

    def __enter__(self) -> 'VideoWriter':
        return self

    def write(self, frame: bytes | memoryview) -> None:
        try:
            self._process.stdin.write(frame)
        except BrokenPipeError:
            self.end()

    def end(self) -> None:
        """Completes the file. Raises EngineError if ffmpeg failed."""
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        finish(self._process, self._errors)

    def __exit__(self, *_reason: object) -> None:
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


def even(side: int) -> int:
    """Rounded down to an even number, which H.264 needs."""
    return side & ~1
