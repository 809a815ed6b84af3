"""Generates text with a model of transformers, token by token."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import Cancelled, invalid
from .text_pieces import TextPieces
from .text_request import Sampling
from .torch_device import TorchDevice
from .transformers_model import too_long

# Lower temperatures divide by almost nothing; they mean the likeliest token.
COLDEST = 1e-4

SEEDS = 1 << 63


@dataclass(frozen=True)
class Generated:
    finish_reason: str
    """`stop` or `length`."""
    prompt_tokens: int
    completion_tokens: int


class TextGenerator:
    def __init__(self, device: TorchDevice, model: Any, tokenizer: Any, context: int | None) -> None:
        self.device = device
        self.model = model
        self.tokenizer = tokenizer
        self.context = context

    def generate(
        self, prompt: dict[str, Any], sampling: Sampling, cancelled: threading.Event, on_text: Callable[[str], None]
    ) -> Generated:
        """
        Continues a prompt, the arguments of the model; `on_text` gets the pieces of the answer. Raises EngineError for a
        prompt without room for an answer, and Cancelled.
        """
        import torch

        length = prompt['input_ids'].shape[-1]
        if length == 0:
            raise invalid('The prompt has no tokens.')
        room = None if self.context is None else self.context - length
        if room is not None and room < 1:
            raise too_long(
                self.context, f'The prompt has {length} tokens, and the answer needs at least one. Shorten it.'
            )
        most = min(limit for limit in (sampling.most, room, 1 << 20) if limit is not None)
        with self.device.computing(cancelled):
            sink = _Sink(TextPieces(self._decode, sampling.stops), cancelled, on_text)
            if sampling.seed is not None:
                torch.manual_seed(sampling.seed % SEEDS)
            else:
                torch.seed()
            inputs = {name: self._placed(value) for name, value in prompt.items()}
            output = self.model.generate(
                **inputs,
                **self._settings(sampling),
                max_new_tokens=most,
                streamer=sink,
                stopping_criteria=[sink.finished],
            )
        if cancelled.is_set():
            raise Cancelled
        on_text(sink.pieces.end())
        ended = sink.pieces.stopped or int(output[0, -1]) in self._ends()
        return Generated('stop' if ended else 'length', length, output.shape[-1] - length)

    def _placed(self, value: Any) -> Any:
        # Pixels must have the number format of the weights.
        return value.to(self.model.device, self.model.dtype if value.is_floating_point() else None)

    def _decode(self, tokens: Any) -> str:
        return self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    def _ends(self) -> set[int]:
        ends = self.model.generation_config.eos_token_id
        return set(ends if isinstance(ends, list) else [ends])

    def _settings(self, sampling: Sampling) -> dict[str, Any]:
        """Arguments of `generate`: of the request, else of the model's generation_config.json, else OpenAI's defaults."""
        config = self.model.generation_config
        temperature = _first(sampling.temperature, config.temperature, 1.0)
        # Lengths and beams of the files would contradict those of the request.
        settings = {'max_length': None, 'min_length': None, 'min_new_tokens': None, 'num_beams': 1}
        settings['pad_token_id'] = _first(self.tokenizer.pad_token_id, config.pad_token_id, *self._ends())
        if sampling.repetition_penalty is not None:
            settings['repetition_penalty'] = float(sampling.repetition_penalty)
        if temperature < COLDEST:
            return {**settings, 'do_sample': False, 'temperature': None, 'top_p': None, 'top_k': None, 'min_p': None}
        return {
            **settings,
            'do_sample': True,
            'temperature': float(temperature),
            'top_p': float(_first(sampling.top_p, config.top_p, 1.0)) or 1e-9,
            # -1 is another way to say all tokens.
            'top_k': max(0, _first(sampling.top_k, config.top_k, 0)),
            'min_p': _first(sampling.min_p, config.min_p),
        }


class _Sink:
    """Receives the tokens of `generate`, first those of the prompt."""

    def __init__(self, pieces: TextPieces, cancelled: threading.Event, on_text: Callable[[str], None]) -> None:
        self.pieces = pieces
        self._cancelled = cancelled
        self._on_text = on_text
        self._prompt = True

    def put(self, tokens: Any) -> None:
        if self._prompt:
            self._prompt = False
            return
        for token in tokens.flatten().tolist():
            if not self.pieces.stopped:
                self._on_text(self.pieces.add(token))

    def end(self) -> None:
        pass

    def finished(self, tokens: Any, _scores: Any, **_more: Any) -> Any:
        import torch

        over = self.pieces.stopped or self._cancelled.is_set()
        return torch.full((tokens.shape[0],), over, device=tokens.device, dtype=torch.bool)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
