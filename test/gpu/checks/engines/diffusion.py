"""
The work of an image model: steps over a latent with convolutions and attention, from a fixed seed and random weights, and
a PNG file of what comes out. As a program it is the bare loop, without a server: it reads a line for each run from
standard input and answers with a line of JSON.
"""

import argparse
import ctypes
import hashlib
import json
import math
import os
import struct
import sys
import time
import zlib

from accelerator import open_accelerator


class Diffusion:
    """`blocks` are passes of a step over the latent, which decide how long a step takes."""

    def __init__(self, device, blocks):
        import torch

        self.torch = torch
        self.device = torch.device(device)
        self.cuda = device == "cuda"
        self.channels, self.side = (512, 128) if self.cuda else (32, 32)
        self.heads = self.channels // 64 if self.cuda else 1
        self.blocks = blocks
        if not self.cuda:
            # The processor is shared with the server that is measured.
            torch.set_num_threads(1)
        generator = torch.Generator(self.device).manual_seed(7)
        shapes = {"convolution": (self.channels, self.channels, 3, 3), "attention": (3 * self.channels, self.channels)}
        self.weights = {
            name: self._random(shape, generator) / math.sqrt(math.prod(shape[1:])) for name, shape in shapes.items()
        }

    def _random(self, shape, generator):
        return self.torch.randn(shape, generator=generator, dtype=self.torch.bfloat16, device=self.device)

    def _block(self, latent):
        functional = self.torch.nn.functional
        found = functional.conv2d(functional.silu(functional.group_norm(latent, 8)), self.weights["convolution"], padding=1)
        pixels = functional.linear(found.flatten(2).transpose(1, 2), self.weights["attention"])
        parts = pixels.view(1, self.side**2, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts)
        return found + mixed.permute(0, 1, 3, 2).reshape(latent.shape)

    def pixels(self, steps, seed, width, height, on_step=None):
        """RGB bytes. `on_step(number)` is called after each step, once the card has done it."""
        torch = self.torch
        with torch.inference_mode():
            shape = (1, self.channels, self.side, self.side)
            latent = self._random(shape, torch.Generator(self.device).manual_seed(seed))
            for step in range(steps):
                noise = latent
                for _ in range(self.blocks):
                    noise = self._block(noise)
                latent = latent - noise / steps
                if on_step:
                    if self.cuda:
                        torch.cuda.synchronize()
                    on_step(step + 1)
            image = torch.nn.functional.interpolate(latent[:, :3].float(), size=(height, width), mode="bilinear")
            image = (image.sigmoid() * 255).byte()[0].permute(1, 2, 0).contiguous().cpu()
            # torch reads its memory through numpy alone, which need not be installed.
            return ctypes.string_at(image.data_ptr(), image.numel())


class FakeDiffusion:
    """Sleeps, for tests without torch; holds memory of the fake card. A block takes a millisecond."""

    def __init__(self, blocks):
        self.accelerator = open_accelerator("fake")
        self.memory = self.accelerator.random_weights(2**28)
        self.blocks = blocks

    def pixels(self, steps, seed, width, height, on_step=None):
        for step in range(steps):
            time.sleep(0.001 * self.blocks)
            if on_step:
                on_step(step + 1)
        if on_step and "draws-nothing" in self.accelerator.faults():
            return b""
        return bytes((seed + at) % 256 for at in range(3 * width)) * height


def open_diffusion(device, blocks):
    return FakeDiffusion(blocks) if device == "fake" else Diffusion(device, blocks)


def write_png(path, rgb, width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each row begins with the number of its filter; 0 is none.
    rows = b"".join(b"\0" + rgb[at : at + 3 * width] for at in range(0, len(rgb), 3 * width))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))


def draw(diffusion, path, steps, seed, width, height, on_step=None):
    """Makes one file. Returns the seconds of it all and of the steps alone, and a digest of the pixels."""
    began = time.monotonic()
    rgb = diffusion.pixels(steps, seed, width, height, on_step)
    drawn = time.monotonic()
    write_png(path, rgb, width, height)
    seconds = time.monotonic() - began
    return {"seconds": seconds, "pixels_seconds": drawn - began, "digest": hashlib.sha256(rgb).hexdigest()[:16]}


def blocks_for(device, seconds, steps):
    """How many blocks make `steps` steps take about `seconds`."""
    trial = open_diffusion(device, 4)
    trial.pixels(2, 1, 64, 64)
    began = time.monotonic()
    trial.pixels(5, 1, 64, 64)
    block = (time.monotonic() - began) / (5 * 4)
    return max(1, round(seconds / steps / block))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu", "fake"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--side", type=int, default=1024, help="width and height of the picture in pixels")
    parser.add_argument("--seconds", type=float, default=2, help="how long all steps of a picture shall take")
    parser.add_argument("--folder", default=".")
    options = parser.parse_args()
    blocks = blocks_for(options.device, options.seconds, options.steps)
    diffusion = open_diffusion(options.device, blocks)
    path = os.path.join(options.folder, "bare.png")
    print(json.dumps({"blocks": blocks}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(draw(diffusion, path, options.steps, options.seed, options.side, options.side)), flush=True)


if __name__ == "__main__":
    main()
