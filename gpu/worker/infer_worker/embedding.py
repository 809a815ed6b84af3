"""Embeddings by models of transformers, also in the folders of sentence-transformers: POST /v1/embeddings."""

import base64
import struct
import threading
from collections.abc import Callable
from typing import Any

from .errors import Cancelled, invalid
from .options import Options
from .sentence_modules import SentenceModules, read_modules
from .server import Handle, Reply, Request
from .token_batches import token_batches
from .torch_device import TorchDevice, open_device
from .transformers_model import check_characters, context_length, load_weights, too_long, truncation


def load(options: Options, progress: Callable[[float], None]) -> dict[str, Handle]:
    from transformers import AutoModel, AutoTokenizer

    device = open_device(options)
    modules = read_modules(options.model)
    tokenizer = AutoTokenizer.from_pretrained(modules.transformer, local_files_only=True)
    progress(0.1)
    # Models are often stored without the pooler of their architecture, whose output is not used.
    model = load_weights(AutoModel, modules.transformer, device, r'(^|\.)pooler\.')
    embedder = Embedder(options.id, device, tokenizer, model, modules)
    return {'POST /v1/embeddings': embedder.answer}


class Embedder:
    def __init__(self, model_id: str, device: TorchDevice, tokenizer: Any, model: Any, modules: SentenceModules) -> None:
        self.id = model_id
        self.device = device
        self.tokenizer = tokenizer
        self.context = context_length(model.config, tokenizer, modules.longest)
        self.modules = modules
        self.vocabulary = model.get_input_embeddings().num_embeddings
        self.model = model.get_encoder() if model.config.is_encoder_decoder else model
        # Tokenizers keep settings of a call, such as truncation, in themselves.
        self._tokenizing = threading.Lock()
        self.dense = [layer.load(model.device) for layer in modules.dense]

    def answer(self, request: Request, reply: Reply) -> None:
        body = request.json()
        inputs = inputs_of(body.get('input'))
        limit = truncation(body.get('truncate_prompt_tokens'), self.context)
        one = len(inputs) == 1
        with self._tokenizing:
            texts = [self.tokens(text, 'input' if one else f'input[{at}]', limit) for at, text in enumerate(inputs)]
        vectors: list[list[float]] = [[]] * len(texts)
        for batch in token_batches([len(tokens) for tokens in texts]):
            with self.device.computing(request.cancelled):
                for at, vector in zip(batch, self.embed([texts[at] for at in batch]), strict=True):
                    vectors[at] = vector
        if request.cancelled.is_set():
            raise Cancelled
        encode = encode_base64 if body.get('encoding_format') == 'base64' else list
        tokens = sum(map(len, texts))
        reply.send({
            'object': 'list',
            'data': [
                {'object': 'embedding', 'index': at, 'embedding': encode(vector)} for at, vector in enumerate(vectors)
            ],
            'model': self.id,
            'usage': {'prompt_tokens': tokens, 'total_tokens': tokens},
        })

    def tokens(self, text: str | list[int], param: str, limit: int | None) -> list[int]:
        """Token ids of a text with the special tokens around it; ids of the caller stay as they are."""
        if isinstance(text, str):
            check_characters(text, self.context, param)
            cut = {} if limit is None else {'truncation': True, 'max_length': limit}
            # A limit below the number of special tokens cuts nothing.
            tokens = self.tokenizer(text, **cut)['input_ids'][:limit]
        else:
            wrong = next((token for token in text if not 0 <= token < self.vocabulary), None)
            if wrong is not None:
                raise invalid(f"'{param}' contains the token {wrong}; this model has tokens 0 to {self.vocabulary - 1}.")
            tokens = text[:limit]
        if not tokens:
            raise invalid(f"'{param}' has no tokens.")
        if self.context is not None and len(tokens) > self.context:
            raise too_long(self.context, f"'{param}' has {len(tokens)} tokens. Shorten it or send it in parts.")
        return tokens

    def embed(self, texts: list[list[int]]) -> list[list[float]]:
        """Vectors of length 1."""
        import torch

        longest = max(map(len, texts))
        padding = self.tokenizer.pad_token_id or 0
        ids = torch.tensor([tokens + [padding] * (longest - len(tokens)) for tokens in texts])
        mask = torch.tensor([[1] * len(tokens) + [0] * (longest - len(tokens)) for tokens in texts])
        place = next(self.model.parameters()).device
        ids, mask = ids.to(place), mask.to(place)
        hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        pooled = torch.cat([pool(hidden, mask, how) for how in self.modules.pooling], dim=-1)
        for layer in self.dense:
            pooled = layer(pooled)
        return torch.nn.functional.normalize(pooled, dim=-1).cpu().tolist()


def pool(hidden: Any, mask: Any, how: str) -> Any:
    """Reduces the vectors of the tokens of each text to one. Padding is at the end of a text and does not count."""
    import torch

    counted = mask.unsqueeze(-1).to(hidden.dtype)
    if how == 'cls':
        return hidden[:, 0]
    if how == 'lasttoken':
        return hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(dim=1) - 1]
    if how == 'max':
        return hidden.masked_fill(counted == 0, float('-inf')).amax(dim=1)
    length = counted.sum(dim=1)
    return (hidden * counted).sum(dim=1) / (length.sqrt() if how == 'mean_sqrt_len_tokens' else length)


def inputs_of(value: object) -> list[str | list[int]]:
    """The texts of a request: one or several, as strings or as token ids. Raises EngineError 400."""

    def is_text(one: object) -> bool:
        return isinstance(one, str) or (isinstance(one, list) and bool(one) and all(type(token) is int for token in one))

    if is_text(value):
        return [value]
    if isinstance(value, list) and value and all(is_text(one) for one in value):
        return value
    raise invalid("'input' must be a text, a list of token ids, or a list of either.")


def encode_base64(vector: list[float]) -> str:
    """Little-endian 32-bit floats in base64."""
    return base64.b64encode(struct.pack(f'<{len(vector)}f', *vector)).decode()
