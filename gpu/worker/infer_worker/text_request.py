"""Checks requests for text: which fields are supported, sampling, messages."""

import base64
import binascii
import re
from dataclasses import dataclass

from .errors import invalid

MOST_STOPS = 16

# Fields that would change the answer if they were supported, with the values that change nothing.
_UNSUPPORTED: dict[str, tuple] = {
    'n': (1,),
    'best_of': (1,),
    'tools': ([],),
    'tool_choice': ('none', 'auto'),
    'response_format': ({'type': 'text'},),
    'logprobs': (False,),
    'top_logprobs': (0,),
    'logit_bias': ({},),
    'presence_penalty': (0, 0.0),
    'frequency_penalty': (0, 0.0),
    'echo': (False,),
    'suffix': ('',),
}


@dataclass(frozen=True)
class Sampling:
    """How text is generated; None is the default of the model."""

    most: int | None
    """The most tokens to generate; None up to the end of the context."""
    stops: tuple[str, ...]
    seed: int | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    repetition_penalty: float | None


def read_sampling(body: dict) -> Sampling:
    """Raises EngineError 400 for a field that is not supported or has a wrong value."""
    for name, harmless in _UNSUPPORTED.items():
        value = body.get(name)
        # False equals 0, and the two differ in `logprobs`.
        if value is not None and not any(type(value) is type(one) and value == one for one in harmless):
            raise invalid(f"'{name}' is not supported by the engine of this model.", 'unsupported_parameter')
    stop = body.get('stop')
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or len(stops) > MOST_STOPS or not all(isinstance(one, str) and one for one in stops):
        raise invalid(f"'stop' must be a text or a list of up to {MOST_STOPS} texts.")
    limit = 'max_completion_tokens' if body.get('max_completion_tokens') is not None else 'max_tokens'
    return Sampling(
        most=_number(body, limit, int, 1, None),
        stops=tuple(stops),
        seed=_number(body, 'seed', int, None, None),
        temperature=_number(body, 'temperature', float, 0, None),
        top_p=_number(body, 'top_p', float, 0, 1),
        top_k=_number(body, 'top_k', int, -1, None),
        min_p=_number(body, 'min_p', float, 0, 1),
        repetition_penalty=_number(body, 'repetition_penalty', float, 0.01, None),
    )


def read_messages(value: object, images_allowed: bool) -> list[dict]:
    """
    The messages of a chat. The content of each is a text, or with images a list of parts `{'type': 'text', 'text'}` and
    `{'type': 'image', 'bytes'}`. Raises EngineError 400.
    """
    if not isinstance(value, list) or not value:
        raise invalid("'messages' must be a list of messages.")
    return [_message(message, f'messages[{at}]', images_allowed) for at, message in enumerate(value)]


def _message(message: object, name: str, images_allowed: bool) -> dict:
    if not isinstance(message, dict) or not isinstance(message.get('role'), str):
        raise invalid(f"'{name}' must have a role.")
    # OpenAI's newer name, which no chat template knows.
    role = 'system' if message['role'] == 'developer' else message['role']
    if role not in ('system', 'user', 'assistant'):
        raise invalid(f"'{name}.role' is '{role}', but the engine of this model reads system, user and assistant.")
    content = message.get('content')
    if content is None or isinstance(content, str):
        return {'role': role, 'content': content or ''}
    if not isinstance(content, list):
        raise invalid(f"'{name}.content' must be a text or a list of parts.")
    parts = [_part(part, f'{name}.content[{at}]', images_allowed) for at, part in enumerate(content)]
    if all(part['type'] == 'text' for part in parts):
        return {'role': role, 'content': '\n'.join(part['text'] for part in parts)}
    return {'role': role, 'content': parts}


def _part(part: object, name: str, images_allowed: bool) -> dict:
    kind = part.get('type') if isinstance(part, dict) else None
    if kind == 'text' and isinstance(part.get('text'), str):
        return {'type': 'text', 'text': part['text']}
    if kind != 'image_url' or not images_allowed:
        what = 'texts and images' if images_allowed else 'texts'
        raise invalid(f"'{name}' is no part that this model reads: it reads {what}.", 'unsupported_parameter')
    reference = part.get('image_url')
    url = reference.get('url') if isinstance(reference, dict) else reference
    return {'type': 'image', 'bytes': data_of_url(url, f'{name}.image_url.url')}


def data_of_url(url: object, name: str) -> bytes:
    """The content of a `data:` URL in base64. Raises EngineError 400."""
    found = re.match(r'data:[^,;]*(?:;[^,;]*)*;base64,', url) if isinstance(url, str) else None
    if not found:
        raise invalid(f"'{name}' must be a data: URL with base64.")
    try:
        return base64.b64decode(url[found.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise invalid(f"'{name}' is not valid base64.", 'invalid_image') from None


def _number(body: dict, name: str, kind: type, least: float | None, greatest: float | None) -> int | float | None:
    value = body.get(name)
    if value is None:
        return None
    allowed = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, allowed):
        raise invalid(f"'{name}' must be {'an integer' if kind is int else 'a number'}.")
    if (least is not None and value < least) or (greatest is not None and value > greatest):
        raise invalid(f"'{name}' must be {f'at least {least}' if greatest is None else f'from {least} to {greatest}'}.")
    return value
