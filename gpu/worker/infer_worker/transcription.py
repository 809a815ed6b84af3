"""Whisper models: POST /v1/audio/transcriptions and /v1/audio/translations, with times of segments and words."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .errors import Cancelled, invalid
from .options import Options
from .server import Handle, Reply, Request

FORMATS = ('json', 'text', 'verbose_json')


@dataclass(frozen=True)
class Call:
    """A request that was checked."""

    audio: bytes
    translates: bool
    language: str | None
    prompt: str | None
    temperature: float | None
    words: bool
    format: str
    stream: bool


@dataclass(frozen=True)
class Segment:
    """A part of the text. Times in seconds."""

    start: float
    end: float
    text: str
    words: tuple[tuple[str, float, float], ...] = ()
    details: dict | None = None
    """Further fields of OpenAI's segments, where the library knows them."""


@dataclass(frozen=True)
class Transcription:
    """The audio as text. The text is computed while the segments are read."""

    language: str | None
    """None if the library does not tell it."""
    duration: float
    segments: Iterator[Segment]


Transcribe = Callable[[Call, Request], Transcription]


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    """Loads a folder of CTranslate2 with faster-whisper, or one of transformers."""
    from .whisper_ctranslate2 import is_ctranslate2, load_ctranslate2

    if is_ctranslate2(options.model):
        transcribe = load_ctranslate2(options)
    else:
        from .whisper_transformers import load_transformers

        transcribe = load_transformers(options)

    def handler(translates: bool) -> Handle:
        return lambda request, reply: answer(transcribe, read_call(request, translates), request, reply)

    return {'POST /v1/audio/transcriptions': handler(False), 'POST /v1/audio/translations': handler(True)}


def read_call(request: Request, translates: bool) -> Call:
    """Raises EngineError 400 for a form without audio or with a wrong field."""
    parts = request.form()
    fields = {part.name: part.content for part in parts if part.name != 'timestamp_granularities[]'}

    def text(name: str) -> str | None:
        return fields[name].decode('utf-8', 'replace').strip() or None if name in fields else None

    if 'file' not in fields:
        raise invalid("The form has no file field 'file'.", 'missing_required_parameter')
    format = text('response_format') or 'json'
    if format not in FORMATS:
        raise invalid(f"'response_format' must be {', '.join(FORMATS)}, not {format}.")
    try:
        temperature = float(text('temperature') or 0)
    except ValueError:
        raise invalid("'temperature' must be a number.") from None
    if not 0 <= temperature <= 1:
        raise invalid("'temperature' must be from 0 to 1.")
    return Call(
        audio=fields['file'],
        translates=translates,
        language=text('language'),
        prompt=text('prompt'),
        temperature=temperature or None,
        words=any(part.name == 'timestamp_granularities[]' and part.content == b'word' for part in parts),
        format=format,
        stream=text('stream') == 'true',
    )


def read_samples(audio: bytes):  # noqa: ANN201: numpy is imported late
    """The samples of a mono WAV file of 16 bits, as floats, and their rate. Raises EngineError 400."""
    import wave

    import numpy

    try:
        with wave.open(io.BytesIO(audio)) as file:
            if file.getnchannels() != 1 or file.getsampwidth() != 2:
                raise invalid('The audio must be mono WAV of 16 bits.', 'invalid_audio')
            rate, frames = file.getframerate(), file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise invalid(f'The audio is not a WAV file: {error}', 'invalid_audio') from None
    return numpy.frombuffer(frames, dtype='<i2').astype('float32') / 32768, rate


def answer(transcribe: Transcribe, call: Call, request: Request, reply: Reply) -> None:
    result = transcribe(call, request)
    if call.stream:
        return stream(result, request, reply)
    segments = []
    for segment in result.segments:
        if request.cancelled.is_set():
            raise Cancelled
        segments.append(segment)
    text = ''.join(segment.text for segment in segments).strip()
    if call.format == 'text':
        return reply.send(text.encode(), 'text/plain; charset=utf-8')
    if call.format == 'json':
        return reply.send({'text': text})
    reply.send(
        {
            'task': 'translate' if call.translates else 'transcribe',
            **({'language': result.language} if result.language else {}),
            'duration': result.duration,
            'text': text,
            'segments': [
                {'id': at, 'start': one.start, 'end': one.end, 'text': one.text, **(one.details or {})}
                for at, one in enumerate(segments)
            ],
            **({'words': [word_of(word) for one in segments for word in one.words]} if call.words else {}),
        }
    )


def stream(result: Transcription, request: Request, reply: Reply) -> None:
    """Sends each segment as soon as it is known, in the events of OpenAI."""

    def event(message: dict) -> None:
        reply.write(f'data: {json.dumps(message)}\n\n'.encode())

    text = ''
    for segment in result.segments:
        if request.cancelled.is_set():
            raise Cancelled
        piece = segment.text if text else segment.text.lstrip()
        if not piece:
            continue
        if not reply.begun:
            reply.begin('text/event-stream')
        event({'type': 'transcript.text.delta', 'delta': piece})
        text += piece
    if not reply.begun:
        reply.begin('text/event-stream')
    event({'type': 'transcript.text.done', 'text': text})
    reply.end()


def word_of(word: tuple[str, float, float]) -> dict:
    text, start, end = word
    return {'word': text.strip(), 'start': start, 'end': end}
