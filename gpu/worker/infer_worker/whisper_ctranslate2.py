"""Whisper models in the format of CTranslate2, by faster-whisper."""

import json
import os

from .errors import invalid
from .options import Options
from .server import Request
from .transcription import Call, Segment, Transcribe, Transcription, read_samples

RATE = 16_000
"""Samples per second that Whisper reads."""
COMPUTE_TYPES = {'float32': 'float32', 'float16': 'float16', 'bfloat16': 'bfloat16'}


def is_ctranslate2(folder: str) -> bool:
    """Models of transformers have `model_type` in their configuration, and `model.safetensors`."""
    return os.path.isfile(os.path.join(folder, 'model.bin')) and 'model_type' not in configuration(folder)


def configuration(folder: str) -> dict:
    try:
        with open(os.path.join(folder, 'config.json'), encoding='utf-8') as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def load_ctranslate2(options: Options) -> Transcribe:
    try:
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise ValueError(
            f'it needs the Python package faster-whisper ({error}). Install it with: infer engine setup speech'
        ) from None
    if not os.path.isfile(os.path.join(options.model, 'tokenizer.json')):
        raise ValueError('its folder has no tokenizer.json, which faster-whisper needs without a network')
    usual = 'int8' if options.device == 'cpu' else 'float16'
    model = WhisperModel(
        options.model,
        device=options.device,
        compute_type=options.quantization or COMPUTE_TYPES.get(options.dtype, usual),
        cpu_threads=options.threads,
        local_files_only=True,
    )

    def transcribe(call: Call, _request: Request) -> Transcription:
        samples, rate = read_samples(call.audio)
        if rate != RATE:
            raise invalid(f'The audio must have {RATE} samples per second, not {rate}.', 'invalid_audio')
        if call.translates and not model.model.is_multilingual:
            raise invalid('The model knows English only, so it cannot translate.', 'unsupported_parameter')
        if call.language is not None and call.language not in model.supported_languages:
            raise invalid(
                f"'language' is {call.language}, but the model knows: {', '.join(sorted(model.supported_languages))}."
            )
        segments, info = model.transcribe(
            samples,
            language=call.language,
            task='translate' if call.translates else 'transcribe',
            initial_prompt=call.prompt,
            word_timestamps=call.words,
            # Without a temperature Whisper raises it by itself where the text repeats.
            **({} if call.temperature is None else {'temperature': call.temperature}),
        )
        return Transcription(info.language, info.duration, map(segment_of, segments))

    return transcribe


def segment_of(one: object) -> Segment:
    return Segment(
        one.start,
        one.end,
        one.text,
        tuple((word.word, word.start, word.end) for word in one.words or ()),
        {
            'seek': one.seek,
            'tokens': list(one.tokens),
            'temperature': one.temperature,
            'avg_logprob': one.avg_logprob,
            'compression_ratio': one.compression_ratio,
            'no_speech_prob': one.no_speech_prob,
        },
    )
