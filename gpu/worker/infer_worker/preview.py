"""Unfinished images and videos, decoded small: the latents are reduced first, so that a preview costs a fraction of a step."""

from typing import Any

SIDE = 32
"""The longer side of reduced latents. The image has eight times as many pixels in most models."""


def preview_steps(wanted: int, steps: int) -> frozenset[int]:
    """The steps, from 0, after which a preview is sent: evenly spread, and not the last. Pure."""
    return frozenset(round(steps * (at + 1) / (wanted + 1)) - 1 for at in range(wanted)) - {steps - 1, -1}


def preview(pipeline: Any, latents: Any, shape: Any) -> Any:
    """A Pillow image, of a video its middle frame; None for models whose latents are no images."""
    import torch
    from PIL import Image

    vae = getattr(pipeline, 'vae', None)
    if vae is None:
        return None
    latents = unpacked(pipeline, latents[:1], shape)
    if latents is None or latents.ndim not in (4, 5):
        return None
    if latents.ndim == 5:
        middle = latents.shape[2] // 2
        latents = latents[:, :, middle : middle + 1]
    longer = max(latents.shape[-2:])
    if longer > SIDE:
        sides = [max(1, round(side * SIDE / longer)) for side in latents.shape[-2:]]
        time = latents.shape[2:-2]
        latents = torch.nn.functional.interpolate(latents.float(), [*time, *sides], mode='area')
    latents = denormalized(vae, latents.float()).to(vae.dtype)
    # LTX's decoder removes the last noise itself.
    noise = {'temb': torch.zeros(1, device=latents.device, dtype=vae.dtype)} if vae.config.get('timestep_conditioning') else {}
    decoded = vae.decode(latents, return_dict=False, **noise)[0]
    image = decoded[0] if decoded.ndim == 4 else decoded[0, :, 0]
    pixels = ((image.float() / 2 + 0.5).clamp(0, 1) * 255).round().byte().permute(1, 2, 0).cpu().numpy()
    return Image.fromarray(pixels)


def unpacked(pipeline: Any, latents: Any, shape: Any) -> Any:
    """The latents with height and width as their last dimensions; None if the pipeline cannot be asked for them."""
    if latents.ndim != 3:
        return latents
    unpack = getattr(pipeline, '_unpack_latents', None)
    if unpack is None:
        return None
    if hasattr(pipeline, 'vae_spatial_compression_ratio'):
        spatial, temporal = pipeline.vae_spatial_compression_ratio, pipeline.vae_temporal_compression_ratio
        patches = (pipeline.transformer_spatial_patch_size, pipeline.transformer_temporal_patch_size)
        frames = (shape.frames - 1) // temporal + 1
        return unpack(latents, frames, shape.height // spatial, shape.width // spatial, *patches)
    return unpack(latents, shape.height, shape.width, pipeline.vae_scale_factor)


def denormalized(vae: Any, latents: Any) -> Any:
    """The latents as the decoder takes them, by the scale, shift, means and deviations that the VAE has."""
    import torch

    buffers = dict(vae.named_buffers())

    def channels(name: str) -> Any:
        values = buffers.get(name, vae.config.get(name))
        if values is None:
            return None
        return torch.as_tensor(values).to(latents).view(1, -1, *[1] * (latents.ndim - 2))

    deviation, mean = channels('latents_std'), channels('latents_mean')
    latents = latents / (vae.config.get('scaling_factor') or 1) + (vae.config.get('shift_factor') or 0)
    return latents if deviation is None or mean is None else latents * deviation + mean
