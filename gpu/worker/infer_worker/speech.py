"""Text to speech: POST /v1/audio/speech and GET /v1/audio/voices, by Piper, Kokoro or Parler-TTS."""

import os
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .errors import Cancelled, invalid
from .options import Options
from .server import Handle, Reply, Request

MOST_CHARACTERS = 65_536
# Names that clients of OpenAI send without choosing; a model without such a voice speaks with its first one.
OPENAI_VOICES = frozenset(
    'alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse'.split()
)


@dataclass(frozen=True)
class Synthesizer:
    """A loaded model."""

    rate: int
    """Samples per second."""
    voices: tuple[dict, ...]
    """The first one is the default: each has `id`, and `language` where it is known. Empty if any text names a voice."""
    speak: Callable[[str, str | None, float, dict], Iterator[bytes]]
    """Yields the samples of a text in 16 bits, piece by piece: text, voice, speed, the whole request."""


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    """Chooses the library by the files of the model. Raises ValueError for a model that none of them reads."""
    synthesizer = library_of(options.model)(options)
    computing = threading.Lock()
    return {
        'POST /v1/audio/speech': lambda request, reply: answer(synthesizer, computing, request, reply),
        'GET /v1/audio/voices': lambda _request, reply: reply.send({'voices': list(synthesizer.voices)}),
    }


def library_of(model: str) -> Callable[[Options], Synthesizer]:
    from . import speech_libraries
    from .piper_voice import load_piper, voice_file

    if voice_file(model) is not None:
        return load_piper
    names = set(os.listdir(model)) if os.path.isdir(model) else set()
    if any(name.startswith('kokoro') and name.endswith('.pth') for name in names):
        return speech_libraries.load_kokoro
    if speech_libraries.kokoro_onnx_files(model) is not None:
        return speech_libraries.load_kokoro_onnx
    if speech_libraries.is_parler(model):
        return speech_libraries.load_parler
    raise ValueError(
        'it is no speech model that infer knows: a Piper voice (.onnx with .onnx.json), a folder of Kokoro '
        '(kokoro….pth, or kokoro….onnx with voices….bin) or a folder of Parler-TTS'
    )


def answer(synthesizer: Synthesizer, computing: threading.Lock, request: Request, reply: Reply) -> None:
    body = request.json()
    text, format, speed = body.get('input'), body.get('response_format') or 'wav', body.get('speed')
    if not isinstance(text, str) or not text.strip() or len(text) > MOST_CHARACTERS:
        raise invalid(f"'input' must be a text of 1 to {MOST_CHARACTERS} characters.")
    if format not in ('wav', 'pcm'):
        raise invalid("'response_format' must be wav or pcm.")
    speed = 1.0 if speed is None else speed
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0.25 <= speed <= 4:
        raise invalid("'speed' must be a number from 0.25 to 4.")
    voice = voice_of(body.get('voice'), synthesizer.voices)
    while not computing.acquire(timeout=0.1):
        if request.cancelled.is_set():
            raise Cancelled
    try:
        send(pieces(synthesizer.speak(text, voice, float(speed), body), request), format, synthesizer.rate, reply)
    finally:
        computing.release()


def voice_of(voice: object, voices: tuple[dict, ...]) -> str | None:
    """The id of a voice. Raises EngineError 400 for one that the model does not have."""
    name = voice.get('id') if isinstance(voice, dict) else voice
    if name is None or not voices:
        return name if isinstance(name, str) else None
    known = [one['id'] for one in voices]
    if name in known:
        return name
    if name in OPENAI_VOICES:
        return known[0]
    listed = ', '.join(known[:100])
    raise invalid(f"'voice': the model has no voice {str(name)[:64]!r}. It has: {listed}.")


def pieces(samples: Iterator[bytes], request: Request) -> Iterator[bytes]:
    for piece in samples:
        if request.cancelled.is_set():
            raise Cancelled
        if piece:
            yield piece


def send(samples: Iterator[bytes], format: str, rate: int, reply: Reply) -> None:
    """Sends the audio while it is synthesized. Audio of one piece is a file whose header has the right length."""
    first = next(samples, None)
    if first is None:
        raise invalid("'input' has nothing that can be spoken.")
    second = next(samples, None)
    kind = 'audio/wav' if format == 'wav' else f'audio/pcm;rate={rate}'
    if second is None:
        return reply.send((wav_head(rate, len(first)) if format == 'wav' else b'') + first, kind)
    reply.begin(kind)
    if format == 'wav':
        reply.write(wav_head(rate, None))
    for piece in (first, second):
        reply.write(piece)
    for piece in samples:
        reply.write(piece)
    reply.end()


def wav_head(rate: int, length: int | None) -> bytes:
    """The header of mono samples of 16 bits. Streams leave the length open: all ones."""
    size = 0xFFFFFFFF
    whole, data = (size, size) if length is None else (36 + length, length)
    return struct.pack('<4sI4s4sIHHIIHH4sI', b'RIFF', whole, b'WAVE', b'fmt ', 16, 1, 1, rate, 2 * rate, 2, 16, b'data', data)
