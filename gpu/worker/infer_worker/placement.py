"""Where the weights of a pipeline are: on the device, or partly in the memory of the host."""

from typing import Any

from .options import Options

WEIGHTS_SHARE = 0.7
"""Weights that fill more of the memory than this leave too little for the computation."""


def choose_offload(wanted: str, weights: int, largest: int, memory: int) -> str:
    """`none`, `model` or `sequential`, by bytes of all weights, of the largest part, and of the memory. Pure."""
    if wanted != 'auto':
        return wanted
    if weights < memory * WEIGHTS_SHARE:
        return 'none'
    return 'model' if largest < memory * WEIGHTS_SHARE else 'sequential'


def place(pipeline: Any, options: Options) -> None:
    """Puts the weights on the device, or lets parts wait in the memory of the host if they do not fit."""
    if options.device == 'cpu':
        return
    import torch

    parts = [part for part in pipeline.components.values() if isinstance(part, torch.nn.Module)]
    sizes = [sum(tensor.nbytes for tensor in part.parameters()) for part in parts]
    memory = options.memory or torch.cuda.mem_get_info()[0]
    offload = choose_offload(options.offload, sum(sizes), max(sizes, default=0), memory)
    if offload == 'none':
        pipeline.to(options.device)
    elif offload == 'model':
        pipeline.enable_model_cpu_offload()
    else:
        pipeline.enable_sequential_cpu_offload()
