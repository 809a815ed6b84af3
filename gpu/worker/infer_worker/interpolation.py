"""Adds frames between those of a video: POST /v1/generate with `slug/video-interpolation`."""

from collections.abc import Callable, Iterator
from typing import Any

from .errors import invalid
from .ffmpeg import frame_rate
from .frame_times import FrameTime, frame_times
from .generation import ALMOST, Call, generation
from .options import Options
from .server import Handle
from .torch_device import TorchDevice, open_device
from .video import VideoReader, VideoWriter, even

TASK = 'slug/video-interpolation'
FILE = 'video.mp4'

# Less similar images belong to different scenes, and nothing moves from one to the other. The bound is that of RIFE.
SAME_SCENE = 0.2


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    from .rife import load_rife

    device = open_device(options)
    network = load_rife(options.model)
    progress(0.9)
    dtype = None if device.dtype == 'auto' else device.dtype
    interpolator = Interpolator(options, device, network.to(device.name, dtype))
    return generation((TASK,), interpolator.run)


class Interpolator:
    def __init__(self, options: Options, device: TorchDevice, network: Any) -> None:
        self.options = options
        self.device = device
        self.network = network

    def run(self, call: Call) -> list[dict[str, str]]:
        inputs = call.inputs
        video = inputs.get('video')
        if not isinstance(video, str):
            raise invalid("'video' must be a path.")
        total, fps = int(inputs['num_frames']), float(inputs['fps'])
        width, height = even(int(inputs['width'])), even(int(inputs['height']))
        ffmpeg, threads = self.options.ffmpeg, self.options.threads
        rate = frame_rate(ffmpeg, video)
        call.log('INFO', f'{rate:g} frames a second become {fps:g}, {total} frames')
        writer = VideoWriter(ffmpeg, call.path(FILE), width, height, fps, video, total / fps, threads)
        with VideoReader(ffmpeg, video, width, height, rate, threads) as reader, writer:
            done = 0
            pairs = self.pairs(reader.frames(), frame_times(total, fps, rate), call)
            for frame in self.images(pairs, width, height, call):
                call.check()
                writer.write(frame)
                done += 1
                call.progress(done / total * ALMOST)
            writer.end()
        return [{'name': FILE, 'kind': 'video'}]

    @staticmethod
    def pairs(
        frames: Iterator[bytes], times: Iterator[FrameTime], call: Call
    ) -> Iterator[tuple[bytes, bytes, list[float]]]:
        """Frames before and after, with the times between them, 0 to 1, of one or more new frames."""
        before = next(frames, None)
        if before is None:
            raise invalid('The video has no frames.', 'invalid_video')
        after, at, between = next(frames, before), 0, []
        for time in times:
            if time.frame > at and between:
                yield before, after, between
                between = []
            while time.frame > at:
                call.check()
                # The last frame stays until the end.
                before, after, at = after, next(frames, after), at + 1
            between.append(time.share)
        if between:
            yield before, after, between

    def images(
        self, pairs: Iterator[tuple[bytes, bytes, list[float]]], width: int, height: int, call: Call
    ) -> Iterator[bytes]:
        for before, after, between in pairs:
            moving = [share for share in between if share > 0]
            first = last = None
            if moving and before != after:
                with self.device.computing(call.cancelled):
                    first, last = (self.image(frame, width, height) for frame in (before, after))
                    if similarity(first, last) < SAME_SCENE:
                        first = last = None
            for share in between:
                if share == 0 or first is None:
                    yield before if share < 0.5 else after
                    continue
                with self.device.computing(call.cancelled):
                    frame = pixels(self.between(first, last, share)[..., :height, :width])
                yield frame

    def image(self, frame: bytes, width: int, height: int) -> Any:
        """The image for the network, with edges that continue to sides that it can read."""
        import torch

        from .rife import MULTIPLE

        parameter = next(self.network.parameters())
        flat = torch.frombuffer(bytearray(frame), dtype=torch.uint8).to(parameter.device)
        image = flat.view(1, height, width, 3).permute(0, 3, 1, 2).to(parameter.dtype) / 255
        return torch.nn.functional.pad(image, (0, -width % MULTIPLE, 0, -height % MULTIPLE), mode='replicate')

    def between(self, first: Any, last: Any, share: float) -> Any:
        import torch

        return self.network(first, last, torch.tensor([share], device=first.device))


def pixels(image: Any) -> bytes:
    rounded = (image[0].float().clamp(0, 1) * 255).round().byte()
    return rounded.permute(1, 2, 0).contiguous().cpu().numpy().tobytes()


def similarity(one: Any, other: Any) -> float:
    """Structural similarity (SSIM) of two images at 32 × 32 pixels, -1 to 1."""
    from torch.nn import functional

    x, y = (functional.interpolate(image.float(), (32, 32), mode='bilinear') for image in (one, other))

    def mean(image: Any) -> Any:
        return functional.avg_pool2d(image, 11, 1)

    mean_x, mean_y = mean(x), mean(y)
    variance_x, variance_y = mean(x * x) - mean_x**2, mean(y * y) - mean_y**2
    covariance = mean(x * y) - mean_x * mean_y
    low, contrast = 0.01**2, 0.03**2
    alike = (2 * mean_x * mean_y + low) * (2 * covariance + contrast)
    return float((alike / ((mean_x**2 + mean_y**2 + low) * (variance_x + variance_y + contrast))).mean())
