"""Encodes audio as latents of LTX-2."""

import math
from typing import Any

from .errors import EngineError, invalid
from .ffmpeg import Tail, finish, from_file, start

# As in the training of LTX-2's audio VAE.
WINDOW = 1024
LEAST = 1e-5


def audio_latents(pipeline: Any, ffmpeg: str, path: str, seconds: float) -> Any:
    """The latents of the first `seconds` of a file, with silence behind shorter audio. Raises EngineError."""
    import torch

    vae = pipeline.audio_vae
    rate, hop = pipeline.audio_sampling_rate, pipeline.audio_hop_length
    compression = pipeline.audio_vae_temporal_compression_ratio
    count = round(seconds * rate / hop / compression)
    # The encoder is causal, so a little more at the end changes nothing before it.
    samples = max((count + 1) * compression * hop, 2 * WINDOW)
    sound = decoded(ffmpeg, path, rate, vae.config.in_channels, samples)
    parameter = next(vae.parameters())
    mel = log_mel(sound, rate, hop, vae.config.mel_bins).unsqueeze(0).to(pipeline._execution_device, parameter.dtype)
    with torch.inference_mode():
        latents = vae.encode(mel).latent_dist.mode()[:, :, :count].float()
    if latents.shape[2] != count:
        raise EngineError(500, f'The audio encoder made {latents.shape[2]} frames instead of {count}.')
    return latents


def log_mel(sound: Any, rate: int, hop: int, bins: int) -> Any:
    """Logarithm of the mel spectrogram: channels × time × bins."""
    import torch
    from transformers.audio_utils import mel_filter_bank

    spectrum = torch.stft(sound, WINDOW, hop, WINDOW, torch.hann_window(WINDOW), return_complex=True).abs()
    filters = mel_filter_bank(WINDOW // 2 + 1, bins, 0.0, rate / 2, rate, norm='slaney', mel_scale='slaney')
    mel = torch.einsum('cft,fm->ctm', spectrum, torch.from_numpy(filters).float())
    return mel.clamp(min=LEAST).log()


def decoded(ffmpeg: str, path: str, rate: int, channels: int, samples: int) -> Any:
    """The first samples of a file, from -1 to 1: channels × samples. Raises EngineError 400 if it has no audio."""
    import torch

    limit = ['-t', f'{math.ceil(samples / rate)}']
    raw = ['-map', '0:a:0', '-ac', str(channels), '-ar', str(rate), '-f', 'f32le', 'pipe:1']
    process = start(ffmpeg, [*from_file(path), *limit, *raw], 1)
    errors = Tail(process.stderr)
    with process.stdout as output:
        content = bytearray(output.read())
    try:
        finish(process, errors)
    except EngineError as error:
        raise invalid(f'The audio cannot be decoded: {error.message}', 'invalid_audio') from None
    whole = len(content) // (4 * channels)
    if whole == 0:
        raise invalid('The file has no audio.', 'invalid_audio')
    sound = torch.frombuffer(content, dtype=torch.float32, count=whole * channels).view(-1, channels).T[:, :samples]
    return torch.nn.functional.pad(sound, (0, samples - sound.shape[1]))
