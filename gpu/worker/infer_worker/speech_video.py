"""
Videos of someone who speaks, from an image and audio: POST /v1/generate with `slug/speech-to-video`.

LTX-2 denoises video and audio together. As in its published audio-to-video pipeline, the audio is given: its latents take
part in every step without noise, so that only the video is generated, and the result has the original audio track.
"""

import inspect
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from .audio_latents import audio_latents
from .errors import invalid
from .generation import ALMOST, Call, generation
from .images import fitted
from .options import Options
from .pipeline_arguments import multiple
from .pipelines import compresses_images
from .placement import place
from .server import Handle
from .torch_device import TorchDevice, open_device
from .video import VideoWriter, even

TASK = 'slug/speech-to-video'
FILE = 'video.mp4'

# Share of the progress before the frames are decoded and written.
DENOISED = 0.95

# The pipeline refuses sides that are no multiples of this.
LEAST_MULTIPLE = 32

# The block that the published settings perturb for spatio-temporal guidance.
STG_BLOCK = 28


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    import torch
    from diffusers import DiffusionPipeline, LTX2ImageToVideoPipeline
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    for log in (diffusers_logging, transformers_logging):
        log.disable_progress_bar()
    device = open_device(options)
    name = str(DiffusionPipeline.load_config(options.model, local_files_only=True).get('_class_name'))
    if not name.startswith('LTX2'):
        raise ValueError(f"Speech to video needs LTX-2, and the folder has a '{name}'.")
    dtype = torch.bfloat16 if device.dtype == 'auto' else device.dtype
    pipeline = LTX2ImageToVideoPipeline.from_pretrained(options.model, dtype=dtype, local_files_only=True)
    progress(0.9)
    place(pipeline, options)
    pipeline.vae.enable_tiling()
    pipeline.set_progress_bar_config(disable=True)
    return generation((TASK,), SpeechVideo(options, device, pipeline).run)


class SpeechVideo:
    def __init__(self, options: Options, device: TorchDevice, pipeline: Any) -> None:
        self.options = options
        self.device = device
        self.pipeline = pipeline

    def run(self, call: Call) -> list[dict[str, str]]:
        inputs = call.inputs
        image, audio, fps, total = inputs.get('image'), inputs.get('audio'), float(inputs['fps']), int(inputs['num_frames'])
        if not isinstance(image, str) or not isinstance(audio, str):
            raise invalid("'image' and 'audio' must be paths.")
        width, height = even(int(inputs['width'])), even(int(inputs['height']))
        with self.device.computing(call.cancelled):
            frames = self.frames(call, image, audio, fps, total, (width, height))
        ffmpeg, threads = self.options.ffmpeg, self.options.threads
        with VideoWriter(ffmpeg, call.path(FILE), width, height, fps, audio, total / fps, threads) as writer:
            for at, frame in enumerate(frames):
                call.check()
                writer.write(frame.tobytes())
                call.progress(DENOISED + (ALMOST - DENOISED) * (at + 1) / total)
            writer.end()
        return [{'name': FILE, 'kind': 'video'}]

    def frames(self, call: Call, image: str, audio: str, fps: float, total: int, size: tuple[int, int]) -> Any:
        """The frames as an array of bytes. Generates as many frames and pixels more as the model needs, and cuts them off."""
        import torch

        pipeline, inputs = self.pipeline, call.inputs
        sides = [multiple(side, max(LEAST_MULTIPLE, pipeline.vae_spatial_compression_ratio)) for side in size]
        count = multiple(total - 1, pipeline.vae_temporal_compression_ratio) + 1
        steps = int(inputs['num_inference_steps'])

        def step_end(_pipeline: Any, step: int, _time: Any, tensors: dict) -> dict:
            call.check()
            call.progress((step + 1) / steps * DENOISED)
            return tensors

        latents = audio_latents(pipeline, self.options.ffmpeg, audio, count / fps)
        try:
            with frozen_audio(pipeline, latents):
                video = pipeline(
                    image=fitted(image, *sides),
                    prompt=inputs['prompt'],
                    negative_prompt=inputs.get('negative_prompt') or '',
                    width=sides[0],
                    height=sides[1],
                    num_frames=count,
                    frame_rate=fps,
                    num_inference_steps=steps,
                    guidance_scale=float(inputs['guidance_scale']),
                    audio_latents=latents,
                    # On the processor, so that a seed means the same on every device.
                    generator=torch.Generator('cpu').manual_seed(int(inputs['seed'])),
                    callback_on_step_end=step_end,
                    output_type='np',
                    **self.guidance(inputs.get('extra') or {}),
                ).frames[0]
        finally:
            pipeline.maybe_free_model_hooks()
        left, top = (sides[0] - size[0]) // 2, (sides[1] - size[1]) // 2
        part = video[:total, top : top + size[1], left : left + size[0]]
        return (part.clip(0, 1) * 255).round().astype('uint8')

    def guidance(self, extra: dict[str, Any]) -> dict[str, Any]:
        """Further arguments of the pipeline. Raises EngineError 400 for one that it does not have."""
        known = inspect.signature(type(self.pipeline).__call__).parameters
        for name in extra:
            if name not in known:
                raise invalid(f"The pipeline has no parameter '{name}'.", 'unsupported_parameter')
        deep = self.pipeline.transformer.config.num_layers > STG_BLOCK
        default = {} if deep else {'stg_scale': 0.0, 'audio_stg_scale': 0.0}
        return {**default, **({} if compresses_images() else {'image_crf': 0}), **extra}


@contextmanager
def frozen_audio(pipeline: Any, latents: Any) -> Any:
    """Within it the transformer sees these audio latents in every step, as audio without noise."""
    import torch

    clean = pipeline.prepare_audio_latents(latents=latents, noise_scale=0.0)

    def replace(_module: Any, arguments: tuple, named: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        noised = named['audio_hidden_states']
        named['audio_hidden_states'] = clean.to(noised).expand_as(noised)
        named['audio_timestep'] = named['audio_sigma'] = torch.zeros_like(named['sigma'])
        return arguments, named

    hook = pipeline.transformer.register_forward_pre_hook(replace, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()
