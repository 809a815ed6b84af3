"""
The network of RIFE 4.25 and 4.26 (Huang et al., Real-Time Intermediate Flow Estimation for Video Frame Interpolation).
Names and shapes of its weights are those of the published files.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTHS = (192, 128, 96, 64, 32)
"""Channels of each block, coarse to fine."""

SCALES = (16, 8, 4, 2, 1)
"""Each block works on images that are smaller by this factor."""

MULTIPLE = 64
"""Sides of images must be multiples of this: the coarsest block halves its images twice more."""

FEATURES = 4
"""Channels that the encoder computes for each image."""

CARRIED = 8
"""Channels that a block passes to the next one."""

# Parts of published files that are used in training only.
TRAINING = ('teacher.', 'caltime.')


def warp(image: Tensor, flow: Tensor) -> Tensor:
    """Takes each pixel from where the flow, in pixels to the right and down, points; edges continue outside."""
    height, width = image.shape[-2:]
    down, right = torch.meshgrid(
        torch.arange(height, device=flow.device, dtype=torch.float32),
        torch.arange(width, device=flow.device, dtype=torch.float32),
        indexing='ij',
    )
    # grid_sample counts from -1 to 1.
    x = (right + flow[:, 0].float()) * (2 / max(width - 1, 1)) - 1
    y = (down + flow[:, 1].float()) * (2 / max(height - 1, 1)) - 1
    grid = torch.stack((x, y), dim=-1)
    warped = functional.grid_sample(image.float(), grid, mode='bilinear', padding_mode='border', align_corners=True)
    return warped.to(image.dtype)


def resized(image: Tensor, factor: float) -> Tensor:
    if factor == 1:
        return image
    return functional.interpolate(image, scale_factor=factor, mode='bilinear', align_corners=False)


class Encoder(nn.Module):
    """Features of an image, at its size."""

    def __init__(self) -> None:
        super().__init__()
        self.cnn0 = nn.Conv2d(3, 16, 3, 2, 1)
        self.cnn1 = nn.Conv2d(16, 16, 3, 1, 1)
        self.cnn2 = nn.Conv2d(16, 16, 3, 1, 1)
        self.cnn3 = nn.ConvTranspose2d(16, FEATURES, 4, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        for layer in (self.cnn0, self.cnn1, self.cnn2):
            image = functional.leaky_relu(layer(image), 0.2)
        return self.cnn3(image)


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, 1, 1)
        self.beta = nn.Parameter(torch.ones(1, channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return functional.leaky_relu(self.conv(x) * self.beta + x, 0.2)


def halving(channels: int, wider: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, wider, 3, 2, 1), nn.LeakyReLU(0.2))


class Block(nn.Module):
    """Refines both flows and the mask at one scale."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        self.conv0 = nn.Sequential(halving(channels, width // 2), halving(width // 2, width))
        self.convblock = nn.Sequential(*(Residual(width) for _ in range(8)))
        # Two flows, the mask, and the channels for the next block.
        self.lastconv = nn.Sequential(nn.ConvTranspose2d(width, 4 * (4 + 1 + CARRIED), 4, 2, 1), nn.PixelShuffle(2))

    def forward(self, x: Tensor, flow: Tensor | None, scale: int) -> tuple[Tensor, Tensor, Tensor]:
        x = resized(x, 1 / scale)
        if flow is not None:
            x = torch.cat((x, resized(flow, 1 / scale) / scale), 1)
        x = resized(self.lastconv(self.convblock(self.conv0(x))), scale)
        return x[:, :4] * scale, x[:, 4:5], x[:, 5:]


class Rife(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        first = 2 * 3 + 2 * FEATURES + 1
        later = first + 4 + 1 + CARRIED
        for at, width in enumerate(WIDTHS):
            self.add_module(f'block{at}', Block(later if at else first, width))
        self.encode = Encoder()

    def forward(self, before: Tensor, after: Tensor, times: Tensor) -> Tensor:
        """
        Images between two others, at times from 0 to 1. Images are N × 3 × height × width with values from 0 to 1 and sides
        that are multiples of `MULTIPLE`.
        """
        first, last = self.encode(before), self.encode(after)
        time = times.to(before.dtype).view(-1, 1, 1, 1).expand(-1, 1, *before.shape[-2:])
        early, late = before, after
        flow = mask = carried = None
        for at, scale in enumerate(SCALES):
            block = getattr(self, f'block{at}')
            if flow is None:
                flow, mask, carried = block(torch.cat((early, late, first, last, time), 1), None, scale)
            else:
                features = (warp(first, flow[:, :2]), warp(last, flow[:, 2:4]))
                x = torch.cat((early, late, *features, time, mask, carried), 1)
                change, mask, carried = block(x, flow, scale)
                flow = flow + change
            early, late = warp(before, flow[:, :2]), warp(after, flow[:, 2:4])
        share = torch.sigmoid(mask)
        return early * share + late * (1 - share)


def load_rife(path: str) -> Rife:
    """
    Loads `flownet.pkl` or `flownet.safetensors`, or the only such file of a folder. Raises ValueError for weights of
    another version.
    """
    weights = {
        name.removeprefix('module.'): tensor
        for name, tensor in _tensors(_file_in(Path(path))).items()
        if not name.removeprefix('module.').startswith(TRAINING)
    }
    network = Rife()
    own = network.state_dict()
    wrong = [name for name in sorted(own.keys() | weights.keys()) if _shape(own, name) != _shape(weights, name)]
    if wrong:
        name = wrong[0]
        raise ValueError(
            f"These are no weights of RIFE 4.25 or 4.26: '{name}' is {_shape(weights, name) or 'absent'}, "
            f'and should be {_shape(own, name) or "absent"}.'
        )
    network.load_state_dict(weights)
    return network.eval()


def _shape(weights: dict[str, Any], name: str) -> tuple[int, ...] | None:
    return tuple(weights[name].shape) if name in weights else None


def _file_in(path: Path) -> Path:
    if path.is_file():
        return path
    files = sorted(file for ending in ('safetensors', 'pkl', 'pth') for file in path.glob(f'*.{ending}'))
    named = [file for file in files if file.stem == 'flownet'] or files
    if len(named) != 1:
        raise ValueError(f'The folder has {len(named)} files of weights. Name the file of RIFE as the source.')
    return named[0]


def _tensors(file: Path) -> dict[str, Tensor]:
    if file.suffix == '.safetensors':
        from safetensors.torch import load_file

        return load_file(file)
    return torch.load(file, map_location='cpu', weights_only=True)
