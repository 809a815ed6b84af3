"""Voices of Piper."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import invalid
from .options import Options
from .speech import Synthesizer


def voice_file(model: str) -> str | None:
    """The `.onnx` file of a Piper voice, given the file or its folder; None for another model."""
    files = [model]
    if os.path.isdir(model):
        files = sorted(os.path.join(model, name) for name in os.listdir(model) if name.endswith('.onnx'))
    return next((file for file in files if file.endswith('.onnx') and os.path.isfile(f'{file}.json')), None)


def load_piper(options: Options) -> Synthesizer:
    try:
        import onnxruntime
        from piper.config import PiperConfig, SynthesisConfig
        from piper.voice import PiperVoice
    except ImportError as error:
        raise ValueError(
            f'it needs the Python package piper-tts ({error}). Install it with: infer engine setup speech'
        ) from None
    file = voice_file(options.model)
    with open(f'{file}.json', encoding='utf-8') as content:
        described = json.load(content)
    config = PiperConfig.from_dict(described)
    session = onnxruntime.SessionOptions()
    session.intra_op_num_threads = options.threads
    # Threads that spin between requests would take the processor from other engines.
    session.add_session_config_entry('session.intra_op.allow_spinning', '0')
    providers = ['CUDAExecutionProvider'] if options.device == 'cuda' else []
    voice = PiperVoice(
        config=config,
        session=onnxruntime.InferenceSession(file, session, providers=[*providers, 'CPUExecutionProvider']),
    )
    language = (described.get('language') or {}).get('code')
    name = Path(file).name.removesuffix('.onnx')
    speakers = config.speaker_id_map or {name: config.default_speaker_id}
    facts = {'language': language} if isinstance(language, str) else {}

    def speak(text: str, chosen: str | None, speed: float, body: dict) -> Iterator[bytes]:
        settings = SynthesisConfig(
            noise_scale=noise_of(body, 'noise_scale', config.noise_scale),
            noise_w_scale=noise_of(body, 'noise_w_scale', config.noise_w_scale),
            speaker_id=speakers.get(chosen, config.default_speaker_id) if config.num_speakers > 1 else None,
            length_scale=config.length_scale / speed,
        )
        for chunk in voice.synthesize(text, settings):
            yield chunk.audio_int16_bytes

    return Synthesizer(config.sample_rate, tuple({'id': speaker, **facts} for speaker in speakers), speak)


def noise_of(body: dict, name: str, usual: float) -> float:
    """How much a voice varies; 0 makes the same audio of the same text each time. Raises EngineError 400."""
    value = body.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 2:
        raise invalid(f"'{name}' must be a number from 0 to 2.")
    return float(value)
