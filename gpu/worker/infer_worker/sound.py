"""The audio that some pipelines make with their videos."""

import wave
from typing import Any


def sound_of(pipeline: Any, output: Any) -> tuple[Any, int] | None:
    """Samples from -1 to 1 as channels × time, and their rate; None for a pipeline without audio."""
    audio, vocoder = getattr(output, 'audio', None), getattr(pipeline, 'vocoder', None)
    if audio is None or vocoder is None:
        return None
    samples = audio[0].detach().float().cpu().numpy()
    return (samples if samples.ndim == 2 else samples[None]), int(vocoder.config.output_sampling_rate)


def write_wav(path: str, samples: Any, rate: int) -> None:
    """16 bits a sample. Values that are no numbers become silence."""
    import numpy

    whole = (numpy.nan_to_num(samples).clip(-1, 1) * 32767).round().astype('<i2')
    with wave.open(path, 'wb') as file:
        file.setnchannels(whole.shape[0])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(whole.T.tobytes())
