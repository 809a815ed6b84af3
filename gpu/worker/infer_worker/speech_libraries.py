"""Speech models of libraries that `infer engine setup` does not install: Kokoro and Parler-TTS."""

import json
import os
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

from .errors import invalid
from .options import Options
from .speech import Synthesizer


def missing(package: str, error: ImportError) -> ValueError:
    return ValueError(f'it needs the Python package {package} ({error}). Install it in the environment of the engine')


def is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def to_bytes(samples) -> bytes:  # noqa: ANN001: numpy or torch
    import numpy

    return (numpy.clip(numpy.asarray(samples, dtype='float32').reshape(-1), -1, 1) * 32767).astype('<i2').tobytes()


def load_kokoro(options: Options) -> Synthesizer:
    """A folder with `config.json`, `kokoro….pth` and `voices/*.pt`. The first letter of a voice is its language."""
    try:
        import torch
        from kokoro import KModel, KPipeline
    except ImportError as error:
        raise missing('kokoro', error) from None
    folder = options.model
    torch.set_num_threads(options.threads)
    weights = next(name for name in sorted(os.listdir(folder)) if name.startswith('kokoro') and name.endswith('.pth'))
    voices = sorted(name.removesuffix('.pt') for name in os.listdir(os.path.join(folder, 'voices')))
    if any(name[0] in 'ab' for name in voices) and not is_installed('en_core_web_sm'):
        # Kokoro would try to download it with the first English text.
        raise ValueError('its English voices need the Python package en_core_web_sm 3.8, a model of spaCy')
    model = KModel(
        repo_id='hexgrad/Kokoro-82M',
        config=os.path.join(folder, 'config.json'),
        model=os.path.join(folder, weights),
    )
    model = model.to(options.device).eval()
    pipelines: dict[str, KPipeline] = {}

    def speak(text: str, voice: str | None, speed: float, _body: dict) -> Iterator[bytes]:
        name = voice or voices[0]
        language = name[0]
        if language not in pipelines:
            pipelines[language] = KPipeline(lang_code=language, repo_id='hexgrad/Kokoro-82M', model=model)
        file = os.path.join(folder, 'voices', f'{name}.pt')
        for result in pipelines[language](text, voice=file, speed=speed):
            yield to_bytes(result.audio)

    return Synthesizer(24_000, tuple({'id': name} for name in voices), speak)


LANGUAGES = {'a': 'en-us', 'b': 'en-gb', 'e': 'es', 'f': 'fr-fr', 'h': 'hi', 'i': 'it', 'j': 'ja', 'p': 'pt-br', 'z': 'cmn'}
"""Of the first letter of Kokoro's voices: the languages of espeak-ng."""


def kokoro_onnx_files(model: str) -> tuple[str, str] | None:
    """The model and the voices of a folder with `kokoro….onnx` and `voices….bin`; None for another model."""
    names = sorted(os.listdir(model)) if os.path.isdir(model) else []
    weights = next((name for name in names if name.startswith('kokoro') and name.endswith('.onnx')), None)
    voices = next((name for name in names if name.startswith('voices') and name.endswith('.bin')), None)
    return (os.path.join(model, weights), os.path.join(model, voices)) if weights and voices else None


def load_kokoro_onnx(options: Options) -> Synthesizer:
    """Kokoro for ONNX Runtime. A voice speaks the language of its first letter, or `language` of the request."""
    try:
        import onnxruntime
        from kokoro_onnx import Kokoro
    except ImportError as error:
        raise missing('kokoro-onnx', error) from None
    weights, file = kokoro_onnx_files(options.model) or ('', '')
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    settings.add_session_config_entry('session.intra_op.allow_spinning', '0')
    providers = ['CUDAExecutionProvider'] if options.device == 'cuda' else []
    session = onnxruntime.InferenceSession(weights, settings, providers=[*providers, 'CPUExecutionProvider'])
    model = Kokoro.from_session(session, file)
    voices = sorted(model.get_voices())

    def speak(text: str, voice: str | None, speed: float, body: dict) -> Iterator[bytes]:
        if not 0.5 <= speed <= 2:
            raise invalid("'speed' must be from 0.5 to 2 for this model.")
        name = voice or voices[0]
        language = str(body.get('language') or LANGUAGES.get(name[0], 'en-us'))
        # A sentence at a time, so that audio is sent early and a disconnected caller ends the work.
        for sentence in re.split(r'(?<=[.!?。！？])\s*(?=\S)', text):
            yield to_bytes(model.create(sentence, voice=name, speed=speed, lang=language)[0])

    return Synthesizer(24_000, tuple({'id': name, 'language': LANGUAGES.get(name[0], 'en-us')} for name in voices), speak)


def is_parler(model: str) -> bool:
    try:
        with open(os.path.join(model, 'config.json'), encoding='utf-8') as file:
            return json.load(file).get('model_type') == 'parler_tts'
    except (OSError, ValueError):
        return False


def load_parler(options: Options) -> Synthesizer:
    """Parler-TTS speaks as a text describes: `instructions`, else the voice."""
    try:
        import torch
        from parler_tts import ParlerTTSForConditionalGeneration
        from transformers import AutoTokenizer
    except ImportError as error:
        raise missing('parler-tts', error) from None
    torch.set_num_threads(options.threads)
    model = ParlerTTSForConditionalGeneration.from_pretrained(options.model, local_files_only=True)
    model = model.to(options.device).eval()
    tokenizer = AutoTokenizer.from_pretrained(options.model, local_files_only=True)

    def tokens(text: str):  # noqa: ANN202: torch is imported late
        return tokenizer(text, return_tensors='pt').input_ids.to(options.device)

    def speak(text: str, voice: str | None, speed: float, body: dict) -> Iterator[bytes]:
        if speed != 1:
            raise invalid("'speed' is not supported by this model; describe it in 'instructions'.", 'unsupported_parameter')
        described = body.get('instructions') or voice or 'A clear voice speaks at a moderate speed.'
        with torch.inference_mode():
            made = model.generate(input_ids=tokens(str(described)), prompt_input_ids=tokens(text))
        yield to_bytes(made.float().cpu().numpy())

    return Synthesizer(model.config.sampling_rate, (), speak)
