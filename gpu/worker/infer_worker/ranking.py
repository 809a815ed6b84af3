"""Cross-encoders of transformers: POST /v1/rerank and /v1/score."""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from .errors import Cancelled, invalid
from .options import Options
from .server import Handle, Reply, Request
from .token_batches import token_batches
from .torch_device import TorchDevice, open_device
from .transformers_model import check_characters, context_length, load_weights, too_long, truncation


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    device = open_device(options)
    tokenizer = AutoTokenizer.from_pretrained(options.model, local_files_only=True)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    progress(0.1)
    model = load_weights(AutoModelForSequenceClassification, options.model, device)
    if model.config.num_labels != 1:
        raise ValueError(f'The model has {model.config.num_labels} labels, but a cross-encoder has one score.')
    # Models that generate text look for the last token before the padding.
    model.config.pad_token_id = tokenizer.pad_token_id
    ranker = Ranker(options.id, device, tokenizer, model)
    return {'POST /v1/rerank': ranker.rerank, 'POST /v1/score': ranker.score}


class Ranker:
    def __init__(self, model_id: str, device: TorchDevice, tokenizer: Any, model: Any) -> None:
        self.id = model_id
        self.device = device
        self.tokenizer = tokenizer
        self.model = model
        self.context = context_length(model.config, tokenizer)
        # Tokenizers keep settings of a call, such as truncation, in themselves.
        self._tokenizing = threading.Lock()

    def rerank(self, request: Request, reply: Reply) -> None:
        body = request.json()
        query = text_of(body.get('query'), 'query')
        documents = texts_of(body.get('documents'), 'documents')
        pairs = [(query, document) for document in documents]
        scores, tokens = self.scores(request, pairs, [('query', name) for name in names_of(documents, 'documents')])
        ranked = sorted(range(len(scores)), key=lambda at: -scores[at])[: body.get('top_n') or len(scores)]
        reply.send({
            'id': f'rerank-{uuid.uuid4().hex}',
            'model': self.id,
            'results': [
                {'index': at, 'document': {'text': documents[at]}, 'relevance_score': scores[at]} for at in ranked
            ],
            'usage': usage_of(tokens),
        })

    def score(self, request: Request, reply: Reply) -> None:
        body = request.json()
        left, right = texts_of(body.get('text_1'), 'text_1'), texts_of(body.get('text_2'), 'text_2')
        scores, tokens = self.scores(
            request, paired(left, right), paired(names_of(left, 'text_1'), names_of(right, 'text_2'))
        )
        reply.send({
            'id': f'score-{uuid.uuid4().hex}',
            'object': 'list',
            'created': int(time.time()),
            'model': self.id,
            'data': [{'index': at, 'object': 'score', 'score': score} for at, score in enumerate(scores)],
            'usage': usage_of(tokens),
        })

    def scores(
        self, request: Request, pairs: list[tuple[str, str]], names: list[tuple[str, str]]
    ) -> tuple[list[float], int]:
        """The probability, 0 to 1, of each pair, and the number of tokens. `names` are the fields in the request."""
        limit = truncation(request.json().get('truncate_prompt_tokens'), self.context)
        with self._tokenizing:
            texts = [self.tokens(pair, name, limit) for pair, name in zip(pairs, names, strict=True)]
        scores = [0.0] * len(texts)
        lengths = [len(text['input_ids']) for text in texts]
        for batch in token_batches(lengths):
            with self.device.computing(request.cancelled):
                for at, score in zip(batch, self.compute([texts[at] for at in batch]), strict=True):
                    scores[at] = score
        if request.cancelled.is_set():
            raise Cancelled
        return scores, sum(lengths)

    def tokens(self, pair: tuple[str, str], names: tuple[str, str], limit: int | None) -> dict[str, list[int]]:
        for text, name in zip(pair, names, strict=True):
            check_characters(text, self.context, name)
        encoded = self.tokenizer(*pair)
        length = len(encoded['input_ids'])
        most = self.context if limit is None else limit
        if most is None or length <= most:
            return dict(encoded)
        # Only the second text is cut; it must keep at least one token.
        if limit is not None and len(self.tokenizer(pair[0], '')['input_ids']) < limit:
            return dict(self.tokenizer(*pair, truncation='only_second', max_length=limit))
        raise too_long(most, f"'{names[0]}' and '{names[1]}' together have {length} tokens. Shorten them.")

    def compute(self, texts: list[dict[str, list[int]]]) -> list[float]:
        batch = self.tokenizer.pad(texts, padding_side='right', return_tensors='pt').to(self.model.device)
        return self.model(**batch).logits.float().sigmoid().flatten().cpu().tolist()


def text_of(value: object, name: str) -> str:
    if isinstance(value, dict):
        value = value.get('text')
    if not isinstance(value, str):
        raise invalid(f"'{name}' must be a text.")
    return value


def texts_of(value: object, name: str) -> list[str]:
    if not isinstance(value, list):
        return [text_of(value, name)]
    if not value:
        raise invalid(f"'{name}' is empty.")
    return [text_of(one, f'{name}[{at}]') for at, one in enumerate(value)]


def names_of(texts: list[str], name: str) -> list[str]:
    return [f'{name}[{at}]' for at in range(len(texts))] if len(texts) > 1 else [name]


def paired(left: list, right: list) -> list[tuple]:
    """Pairs by position; one entry is paired with each of a list. Raises EngineError 400 for other lengths."""
    count = max(len(left), len(right))
    if {len(left), len(right)} - {1, count}:
        raise invalid(f"'text_1' has {len(left)} entries and 'text_2' has {len(right)}; send as many, or a single one.")
    return [(left[at % len(left)], right[at % len(right)]) for at in range(count)]


def usage_of(tokens: int) -> dict:
    return {'prompt_tokens': tokens, 'completion_tokens': 0, 'total_tokens': tokens}
