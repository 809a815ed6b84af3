"""Where the frames of a video with another frame rate lie between those of the original."""

from collections.abc import Iterator
from dataclasses import dataclass

# Nearer to a frame than this, the frame itself is used.
EXACT = 1e-3


@dataclass(frozen=True)
class FrameTime:
    frame: int
    """The frame before it, from 0."""
    share: float
    """How far it is from that frame to the next: 0 to less than 1."""


def frame_times(total: int, fps: float, rate: float) -> Iterator[FrameTime]:
    """The times of `total` frames at `fps` frames a second in a video with `rate`."""
    for at in range(total):
        position = at * rate / fps
        frame = int(position + EXACT)
        share = position - frame
        yield FrameTime(frame, share if share > EXACT else 0.0)
