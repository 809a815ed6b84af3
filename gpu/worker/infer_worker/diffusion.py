"""Images and videos with pipelines of diffusers: POST /v1/generate."""

import gc
import os
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from .errors import EngineError, invalid
from .generation import ALMOST, Call, generation
from .images import centre, encoded, fitted, read_image
from .options import Options
from .pipeline_arguments import Shape, arguments_for, loras_of, shape_for
from .pipelines import compresses_images, load_loras, load_pipeline, parameters_of, pipeline_for
from .placement import place
from .preview import preview, preview_steps
from .server import Handle, Reply, Request
from .sound import sound_of, write_wav
from .torch_device import OutOfMemory, TorchDevice, open_device
from .video import VideoWriter

TASKS: dict[str, tuple[str, ...]] = {
    'std/image-generation': ('slug/text-to-image',),
    'std/image-edit': ('slug/image-to-image',),
}
"""Tasks of OpenAI's image routes, each with those that the engine is asked for."""

DENOISED = 0.9
"""Share of the progress of a video before its frames are decoded and written."""

SOUND = 'sound.wav'
"""The audio of a video until ffmpeg has read it."""


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    """Loads the pipeline and derives one for each task. Raises ValueError with a sentence."""
    import torch
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    for log in (diffusers_logging, transformers_logging):
        log.disable_progress_bar()
    device = open_device(options)
    dtype = torch.bfloat16 if device.dtype == 'auto' else device.dtype
    base = load_pipeline(options, dtype, progress)
    loras = load_loras(base, options.loras)
    if loras:
        base.set_adapters(list(loras), list(loras.values()))
    place(base, options)
    if options.compile:
        (getattr(base, 'transformer', None) or base.unet).compile()
    tasks = {task for name in options.tasks for task in TASKS.get(name, (name,))}
    pipelines = {task: pipeline_for(task, base) for task in sorted(tasks)}
    if 'slug/image-to-image' in pipelines and 'std/image-edit' in options.tasks:
        # Edits with a mask, where the model can.
        try:
            pipelines.setdefault('slug/inpainting', pipeline_for('slug/inpainting', base))
        except ValueError:
            pass
    engine = Diffusion(options, device, base, pipelines, loras)
    return {**generation(tuple(pipelines), engine.run), 'GET /v1/loras': engine.list_loras}


class Diffusion:
    def __init__(
        self, options: Options, device: TorchDevice, base: Any, pipelines: dict[str, Any], loras: dict[str, float]
    ) -> None:
        self.options = options
        self.device = device
        self.base = base
        self.pipelines = pipelines
        self.loras = loras
        self.largest: Shape | None = None
        """The largest shape that was computed, for the advice after running out of memory."""

    def list_loras(self, _request: Request, reply: Reply) -> None:
        reply.send({'data': [{'name': name, 'weight': weight} for name, weight in self.loras.items()]})

    def run(self, call: Call) -> list[dict[str, str]]:
        pipeline, inputs = self.pipelines[call.task], call.inputs
        known = parameters_of(pipeline)
        shape = shape_for(inputs, side_of(pipeline), temporal_of(pipeline))
        arguments = arguments_for(known, inputs, shape, takes_guidance(pipeline), compresses_images())
        arguments |= self.media(call, known, shape)
        loras = loras_of((inputs.get('extra') or {}).get('loras'), self.loras)
        try:
            with self.device.computing(call.cancelled), self.adapters(pipeline, loras):
                is_video = 'num_frames' in known
                files = (self.video if is_video else self.images)(call, pipeline, arguments, shape)
        except OutOfMemory as error:
            # The error of the library holds its frames, and these hold the memory.
            error.__context__ = None
            gc.collect()
            raise OutOfMemory(error.detail, self.advice(shape)) from None
        if self.largest is None or work(shape) > work(self.largest):
            self.largest = shape
        return files

    def media(self, call: Call, known: Any, shape: Shape) -> dict[str, Any]:
        """The images of a call, as the pipeline takes them."""
        image, images, mask = (call.inputs.get(name) for name in ('image', 'images', 'mask'))
        if call.task in ('slug/text-to-image', 'slug/text-to-video'):
            if image is not None:
                raise invalid(f"{call.task} takes no 'image'.", 'unsupported_parameter')
            return {}
        if not isinstance(image, str):
            raise invalid("'image' is missing.")
        if call.task == 'slug/inpainting':
            if not isinstance(mask, str):
                raise invalid("'mask' is missing.")
            return {
                'image': fitted(image, shape.width, shape.height),
                'mask_image': fitted(mask, shape.width, shape.height, 'L'),
                **strength(known, call.inputs),
            }
        if call.task == 'slug/image-to-video' or 'strength' in known:
            return {'image': fitted(image, shape.width, shape.height), **strength(known, call.inputs)}
        # Models that edit see the images in their own size.
        given = [read_image(path) for path in (images or [image])]
        return {'image': given if len(given) > 1 else given[0]}

    def images(self, call: Call, pipeline: Any, arguments: dict[str, Any], shape: Shape) -> list[dict[str, str]]:
        """One image after the other, so that several need no more memory than one."""
        inputs, files = call.inputs, []
        count, kind = int(inputs['num_images']), inputs['output_format']
        for at in range(count):
            [image] = self.compute(call, pipeline, arguments, shape, at, count, 1.0, output_type='pil').images
            name = f'image-{at + 1}.{kind}'
            centre(image.convert('RGB'), int(inputs['width']), int(inputs['height'])).save(call.path(name))
            files.append({'name': name, 'kind': 'image'})
        return files

    def video(self, call: Call, pipeline: Any, arguments: dict[str, Any], shape: Shape) -> list[dict[str, str]]:
        inputs, name = call.inputs, 'video.mp4'
        total, width, height = int(inputs['num_frames']), int(inputs['width']) & ~1, int(inputs['height']) & ~1
        output = self.compute(call, pipeline, arguments, shape, 0, 1, DENOISED, output_type='np')
        frames, sound = output.frames[0], sound_of(pipeline, output)
        left, top = (frames.shape[2] - width) // 2, (frames.shape[1] - height) // 2
        if left < 0 or top < 0 or len(frames) < total:
            raise EngineError(500, f'The model made {len(frames)} frames of {frames.shape[2]} × {frames.shape[1]}.')
        audio = None if sound is None else call.path(SOUND)
        if sound is not None:
            write_wav(audio, *sound)
        fps, options = float(inputs['fps']), self.options
        with VideoWriter(options.ffmpeg, call.path(name), width, height, fps, audio, total / fps, options.threads) as writer:
            for at in range(total):
                call.check()
                frame = frames[at, top : top + height, left : left + width]
                writer.write((frame.clip(0, 1) * 255).round().astype('uint8').tobytes())
                call.progress(DENOISED + (ALMOST - DENOISED) * (at + 1) / total)
            writer.end()
        if audio is not None:
            os.unlink(audio)
        return [{'name': name, 'kind': 'video'}]

    def compute(
        self, call: Call, pipeline: Any, arguments: dict[str, Any], shape: Shape, at: int, count: int, share: float, **more: Any
    ) -> Any:
        """Runs the pipeline once: the image at this position of `count`, or a video."""
        import torch

        steps = int(call.inputs['num_inference_steps'])
        previews = int(call.inputs.get('previews') or 0)

        def step_end(running: Any, step: int, _time: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            call.check()
            # Fewer than requested where the input image replaces the first steps.
            total = getattr(running, 'num_timesteps', None) or steps
            call.progress(min(ALMOST, (at + (step + 1) / total) / count * share))
            if previews and step in preview_steps(previews, total) and 'latents' in tensors:
                image = preview(running, tensors['latents'], shape)
                if image is not None:
                    call.preview(at, encoded(image))
            return tensors

        # On the processor, so that a seed means the same on every device.
        generator = torch.Generator('cpu').manual_seed(int(call.inputs['seed']) + at)
        try:
            return pipeline(**arguments, **more, generator=generator, callback_on_step_end=step_end)
        finally:
            # A derived pipeline does not know that parts of its base wait in the memory of the host.
            self.base.maybe_free_model_hooks()

    @contextmanager
    def adapters(self, pipeline: Any, wanted: dict[str, float] | None) -> Any:
        """Within it the LoRA have these weights; those that are not named have none."""
        if wanted is None or not self.loras:
            yield
            return
        pipeline.set_adapters(list(self.loras), [wanted.get(name, 0.0) for name in self.loras])
        try:
            yield
        finally:
            pipeline.set_adapters(list(self.loras), list(self.loras.values()))

    def advice(self, shape: Shape) -> str:
        """What may fit instead of a shape that did not."""
        frames = f' × {shape.frames} frames' if shape.frames > 1 else ''
        fewer = ' or fewer frames' if shape.frames > 1 else ''
        before = ''
        if self.largest is not None and work(self.largest) < work(shape):
            count = f' × {self.largest.frames} frames' if self.largest.frames > 1 else ''
            before = f', such as {self.largest.width} × {self.largest.height}{count}, which fitted before'
        return (
            f'{shape.width} × {shape.height}{frames} did not fit. Use a smaller size{fewer}{before}, '
            "or set 'offload' or 'quantization' of the model. "
        )


def strength(known: Any, inputs: dict[str, Any]) -> dict[str, float]:
    return {'strength': float(inputs['strength'])} if 'strength' in known else {}


def takes_guidance(pipeline: Any) -> bool:
    """Whether the model was distilled to take guidance as an input."""
    transformer = getattr(pipeline, 'transformer', None)
    return bool(transformer is not None and transformer.config.get('guidance_embeds'))


def work(shape: Shape) -> int:
    return shape.width * shape.height * shape.frames


def side_of(pipeline: Any) -> int:
    """The multiple that sides must be of."""
    names = ('vae_scale_factor_spatial', 'vae_spatial_compression_ratio', 'vae_scale_factor')
    spatial = next((value for name in names if (value := getattr(pipeline, name, None))), 8)
    transformer = getattr(pipeline, 'transformer', None)
    if transformer is None:
        return int(spatial)
    patch = transformer.config.get('patch_size') or 1
    patch = patch[-1] if isinstance(patch, list | tuple) else patch
    # Models whose own patches are single latents may still pack them two by two.
    return int(spatial) * max(int(patch), 1 if hasattr(pipeline, 'vae_spatial_compression_ratio') else 2)


def temporal_of(pipeline: Any) -> int:
    """Frames for each step of time in the latents."""
    names = ('vae_scale_factor_temporal', 'vae_temporal_compression_ratio')
    return int(next((value for name in names if (value := getattr(pipeline, name, None))), 1))
