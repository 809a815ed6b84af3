"""Loads a pipeline of diffusers, and derives from it those of other tasks, which share its weights."""

import inspect
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from .options import Options
from .pipeline_arguments import lora_of

QUANTIZATIONS = ('nf4', 'llm_int8', 'int8')
"""Names of `--quantization`: 4 and 8 bits by bitsandbytes, 8 bits by torchao."""

QUANTIZED = ('transformer', 'transformer_2', 'unet', 'text_encoder', 'text_encoder_2', 'text_encoder_3')
"""Parts with most of the weights. The decoder of images stays as it is."""

FROM_IMAGE = {
    'LTXPipeline': 'LTXImageToVideoPipeline',
    'LTX2Pipeline': 'LTX2ImageToVideoPipeline',
    'WanPipeline': 'WanImageToVideoPipeline',
}
"""Pipelines for text to video, each with that for image to video with the same weights."""


def load_pipeline(options: Options, dtype: Any, progress: Callable[[float], None]) -> Any:
    """Raises ValueError with a sentence for something that is not a folder of diffusers."""
    from diffusers import DiffusionPipeline

    if not os.path.isfile(os.path.join(options.model, 'model_index.json')):
        raise ValueError(
            f'{options.model} is no folder in the form of diffusers: model_index.json is missing. '
            "For a single file use the engine 'sd-server'."
        )
    arguments: dict[str, Any] = {} if dtype == 'auto' else {'dtype': dtype}
    if options.quantization is not None:
        arguments['quantization_config'] = quantization(options, dtype)
    names = [name for _folder, _folders, files in os.walk(options.model) for name in files]
    arguments['variant'] = variant_of(names)
    pipeline = DiffusionPipeline.from_pretrained(options.model, local_files_only=True, **arguments)
    progress(0.9)
    pipeline.set_progress_bar_config(disable=True)
    vae = getattr(pipeline, 'vae', None)
    # Wan's decoder shows stripes in 16 bits.
    if type(pipeline).__name__.startswith('Wan') and vae is not None:
        import torch

        vae.to(torch.float32)
    for saving in ('enable_tiling', 'enable_slicing'):
        if hasattr(vae, saving):
            getattr(vae, saving)()
    return pipeline


def variant_of(names: list[str]) -> str | None:
    """The variant of the weights that the folder has only as such, like `model.fp16.safetensors`. Pure."""
    weights = [name for name in names if name.endswith('.safetensors')]
    for variant in ('fp16', 'bf16'):
        of_variant = [name for name in weights if f'.{variant}' in name]
        if of_variant and len(of_variant) == len(weights):
            return variant
    return None


def quantization(options: Options, dtype: Any) -> Any:
    """How each part with many weights is quantized. Raises ValueError with a sentence."""
    import json

    import diffusers
    import transformers

    if options.quantization not in QUANTIZATIONS:
        raise ValueError(f"There is no quantization '{options.quantization}'. Known: {', '.join(QUANTIZATIONS)}.")
    with open(os.path.join(options.model, 'model_index.json'), encoding='utf-8') as file:
        parts = json.load(file)
    libraries = {'diffusers': diffusers, 'transformers': transformers}
    mapping = {
        name: configuration(libraries[library[0]], options.quantization, dtype)
        for name, library in parts.items()
        if name in QUANTIZED and library[0] in libraries
    }
    return diffusers.PipelineQuantizationConfig(quant_mapping=mapping)


def configuration(library: Any, name: str, dtype: Any) -> Any:
    """The configuration class of diffusers or of transformers, which differ."""
    if name == 'int8':
        from torchao.quantization import Int8WeightOnlyConfig

        return library.TorchAoConfig(Int8WeightOnlyConfig())
    if name == 'llm_int8':
        return library.BitsAndBytesConfig(load_in_8bit=True)
    import torch

    compute = torch.bfloat16 if dtype == 'auto' else dtype
    return library.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4', bnb_4bit_compute_dtype=compute)


def load_loras(pipeline: Any, loras: tuple[str, ...]) -> dict[str, float]:
    """Loads LoRA files into the pipeline. Returns their names, which are those of the files, and weights."""
    weights: dict[str, float] = {}
    for text in loras:
        path, weight = lora_of(text)
        name = os.path.splitext(os.path.basename(path))[0].replace('.', '_')
        if name in weights:
            raise ValueError(f"Two LoRA files have the name '{name}'.")
        if not hasattr(pipeline, 'load_lora_weights'):
            raise ValueError(f'{type(pipeline).__name__} takes no LoRA.')
        pipeline.load_lora_weights(os.path.dirname(path) or '.', weight_name=os.path.basename(path), adapter_name=name)
        weights[name] = weight
    return weights


def parameters_of(pipeline: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(type(pipeline).__call__).parameters)


def compresses_images() -> bool:
    """Whether pipelines can compress an image as the frames of their training data were, which LTX-2 does with PyAV."""
    return find_spec('av') is not None


def pipeline_for(task: str, base: Any) -> Any:
    """The pipeline for a task, with the weights of `base`. Raises ValueError with a sentence if there is none."""
    from diffusers import AutoPipelineForImage2Image, AutoPipelineForInpainting, AutoPipelineForText2Image

    known = parameters_of(base)
    is_video = 'num_frames' in known
    needs_image = 'image' in known and known['image'].default is inspect.Parameter.empty
    name = type(base).__name__
    derive: Callable[[Any], Any] | None = None
    if task == 'slug/text-to-image' and not is_video:
        # Those that edit take images as an option, or have a sister without.
        if 'strength' not in known and not needs_image and 'mask_image' not in known and 'Edit' not in name:
            return base
        derive = AutoPipelineForText2Image.from_pipe
    elif task == 'slug/image-to-image' and not is_video:
        if 'image' in known and 'mask_image' not in known:
            return base
        derive = AutoPipelineForImage2Image.from_pipe
    elif task == 'slug/inpainting' and not is_video:
        if 'mask_image' in known:
            return base
        derive = AutoPipelineForInpainting.from_pipe
    elif task == 'slug/text-to-video' and is_video and not needs_image:
        return base
    elif task == 'slug/image-to-video' and is_video:
        if 'image' in known:
            return base
        derive = sister(base)
    if derive is not None:
        try:
            derived = derive(base)
        except (ValueError, TypeError):
            pass
        else:
            derived.set_progress_bar_config(disable=True)
            return derived
    raise ValueError(f'A {name} cannot do {task}. Remove the task from the model, or choose another model.')


def sister(base: Any) -> Callable[[Any], Any] | None:
    """How to make a pipeline for image to video of one for text to video."""
    import diffusers

    name = FROM_IMAGE.get(type(base).__name__)
    # Only the models of Wan for both have one set of weights for both.
    if name is None or (name.startswith('Wan') and not base.config.get('expand_timesteps')):
        return None
    return getattr(diffusers, name).from_pipe
