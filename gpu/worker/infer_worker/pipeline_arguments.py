"""Arguments of diffusers' pipelines for a call. Pure: pipelines differ in the names that their calls take."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .errors import invalid


@dataclass(frozen=True)
class Shape:
    """What the model computes; the result is cut to what was requested."""

    width: int
    height: int
    frames: int


def shape_for(inputs: dict[str, Any], side: int, temporal: int) -> Shape:
    """The smallest shape that the model can compute and that has the requested one.

    Sides are multiples of `side`; videos have a multiple of `temporal` frames and one.
    """
    frames = int(inputs.get('num_frames') or 1)
    return Shape(
        multiple(int(inputs['width']), side),
        multiple(int(inputs['height']), side),
        1 if frames <= 1 else multiple(frames - 1, temporal) + 1,
    )


def multiple(value: int, of: int) -> int:
    """Rounded up."""
    return math.ceil(value / of) * of


def arguments_for(
    known: Collection[str], inputs: dict[str, Any], shape: Shape, distilled: bool = False, compresses: bool = True
) -> dict[str, Any]:
    """The arguments without images, of those that the pipeline knows. `distilled`: the model takes guidance as an input.
    `compresses`: the image can be compressed as the frames of the training data were.

    Raises EngineError 400 for an input that is set and that the pipeline does not have.
    """
    guidance = float(inputs['guidance_scale'])
    arguments: dict[str, Any] = {'prompt': inputs['prompt'], 'num_inference_steps': int(inputs['num_inference_steps'])}
    negative = inputs.get('negative_prompt')
    if negative and 'negative_prompt' not in known:
        raise invalid("The pipeline of this model takes no 'negative_prompt'.", 'unsupported_parameter')
    if 'true_cfg_scale' not in known:
        if 'guidance_scale' in known:
            arguments['guidance_scale'] = guidance
        if 'negative_prompt' in known:
            arguments['negative_prompt'] = negative
    elif distilled and not negative:
        # Guidance is an input of the model, until there is a negative prompt.
        arguments['guidance_scale'] = guidance
    else:
        # Pipelines do without classifier-free guidance if there is no negative prompt at all.
        arguments |= {'true_cfg_scale': guidance, 'negative_prompt': negative or ' '}
    fps = inputs.get('fps')
    optional = {
        'width': shape.width,
        'height': shape.height,
        'num_frames': shape.frames,
        'frame_rate': fps,
        'fps': fps,
        # 0 leaves the image as it is.
        'image_crf': None if compresses else 0,
    }
    arguments |= {name: value for name, value in optional.items() if name in known and value is not None}
    extra = {name: value for name, value in (inputs.get('extra') or {}).items() if name != 'loras'}
    for name in extra:
        if name not in known or name in RESERVED:
            raise invalid(f"The pipeline of this model has no parameter '{name}'.", 'unsupported_parameter')
    return {**arguments, **extra}


RESERVED = frozenset(
    {
        'self',
        'kwargs',
        'image',
        'mask_image',
        'generator',
        'output_type',
        'return_dict',
        'callback_on_step_end',
        'callback_on_step_end_tensor_inputs',
        'num_images_per_prompt',
        'num_videos_per_prompt',
    }
)
"""Arguments that the worker itself sets."""


def lora_of(text: str) -> tuple[str, float]:
    """`/models/style.safetensors=0.8` as path and weight; without a weight it is 1. Raises ValueError with a sentence."""
    path, separator, weight = text.rpartition('=')
    if not separator:
        return text, 1.0
    try:
        return path, float(weight)
    except ValueError:
        raise ValueError(f"The weight of the LoRA '{text}' must be a number.") from None


def loras_of(wanted: object, loaded: Collection[str]) -> dict[str, float] | None:
    """The weights of `extra.loras`; None if it is absent. Raises EngineError 400."""
    if wanted is None:
        return None
    if not isinstance(wanted, list) or not all(isinstance(one, dict) for one in wanted):
        raise invalid("'loras' must be a list of objects with 'name' and 'weight'.")
    weights: dict[str, float] = {}
    for one in wanted:
        name, weight = one.get('name'), one.get('weight', 1)
        if name not in loaded:
            raise invalid(f"There is no LoRA '{name}'. Loaded: {', '.join(sorted(loaded)) or 'none'}.")
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise invalid(f"The weight of the LoRA '{name}' must be a number.")
        weights[name] = float(weight)
    return weights
