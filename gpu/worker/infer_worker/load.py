"""Chooses the code that runs a model, by its tasks."""

from collections.abc import Callable
from importlib import import_module

from .options import Options
from .server import Handle

FAMILIES: dict[str, tuple[str, ...]] = {
    'diffusion': (
        'slug/text-to-image',
        'slug/image-to-image',
        'slug/inpainting',
        'slug/text-to-video',
        'slug/image-to-video',
        'std/image-generation',
        'std/image-edit',
    ),
    'speech_video': ('slug/speech-to-video',),
    'interpolation': ('slug/video-interpolation',),
    'speech': ('std/audio-speech',),
    'transcription': ('std/audio-transcription', 'std/audio-translation'),
    'embedding': ('std/embeddings',),
    'ranking': ('std/rerank', 'std/score'),
    'chat': ('std/chat-completion', 'std/completion'),
}
"""Modules of this package, each with the tasks that it runs."""


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    """Loads the model and returns its routes. Raises ValueError with a sentence for a model that it cannot run."""
    families = [name for name, tasks in FAMILIES.items() if any(task in tasks for task in options.tasks)]
    if len(families) != 1:
        raise ValueError(f'One process runs one kind of model, and the tasks are {", ".join(options.tasks)}.')
    return import_module(f'.{families[0]}', __package__).load(options, progress)
