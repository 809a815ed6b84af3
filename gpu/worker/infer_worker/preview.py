"""Unfinished images, decoded small: the latents are reduced first, so that a preview costs a fraction of a step."""

from typing import Any

SIDE = 32
"""The longer side of reduced latents. The image has eight times as many pixels in most models."""


def preview_steps(wanted: int, steps: int) -> frozenset[int]:
    """The steps, from 0, after which a preview is sent: evenly spread, and not the last. Pure."""
    return frozenset(round(steps * (at + 1) / (wanted + 1)) - 1 for at in range(wanted)) - {steps - 1, -1}


def preview(pipeline: Any, latents: Any, shape: Any) -> Any:
    """A Pillow image; None for models whose latents are no images."""
    import torch
    from PIL import Image

    vae = getattr(pipeline, 'vae', None)
    if vae is None or not hasattr(vae.config, 'scaling_factor'):
        return None
    if latents.ndim == 3 and hasattr(pipeline, '_unpack_latents'):
        latents = pipeline._unpack_latents(latents, shape.height, shape.width, pipeline.vae_scale_factor)
    if latents.ndim != 4:
        return None
    longer = max(latents.shape[-2:])
    if longer > SIDE:
        size = [max(1, round(side * SIDE / longer)) for side in latents.shape[-2:]]
        latents = torch.nn.functional.interpolate(latents[:1].float(), size, mode='area')
    decoded = vae.decode(
        (latents[:1] / vae.config.scaling_factor + (getattr(vae.config, 'shift_factor', None) or 0)).to(vae.dtype),
        return_dict=False,
    )[0]
    pixels = ((decoded[0].float() / 2 + 0.5).clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
    return Image.fromarray(pixels)
