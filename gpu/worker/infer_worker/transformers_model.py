"""Loads models of transformers, and reads the limits of their tokenizers."""

import re
from typing import Any

from .errors import EngineError
from .torch_device import TorchDevice

# Larger values of `model_max_length` mean that the tokenizer knows no limit.
UNLIMITED = 1 << 24

# A character has at most 4 bytes, and tokens are rarely longer than 16 characters: longer texts are refused uncounted.
LONGEST_TOKEN = 64


def load_weights(auto: Any, path: str, device: TorchDevice, optional: str = r'$^') -> Any:
    """
    Loads a model for inference. Raises ValueError if the files lack weights whose names do not match `optional`:
    transformers would fill them with random numbers.
    """
    from transformers.utils import logging

    # The bars would fill the log of the engine.
    logging.disable_progress_bar()
    model, report = auto.from_pretrained(path, dtype=device.dtype, local_files_only=True, output_loading_info=True)
    missing = sorted(name for name in report['missing_keys'] if not re.search(optional, name))
    if missing:
        kind = type(model).__name__
        raise ValueError(f'The files lack {len(missing)} weights of a {kind}, such as {missing[0]}.')
    return model.to(device.name).eval()


def context_length(config: Any, tokenizer: Any, *others: int | None) -> int | None:
    """The most tokens of one text: the smallest limit that the files name; None if they name none."""
    config = config.get_text_config()
    positions = getattr(config, 'max_position_embeddings', None)
    # Models of the RoBERTa family count positions from the one after that of padding.
    if positions is not None and re.search('roberta|camembert|xmod|data2vec-text|mpnet|longformer', config.model_type):
        positions -= (config.pad_token_id or 0) + 1
    limits = [positions, getattr(tokenizer, 'model_max_length', None), *others]
    known = [limit for limit in limits if limit is not None and 0 < limit < UNLIMITED]
    return min(known, default=None)


def check_characters(text: str, context: int | None, param: str) -> str:
    """Refuses texts far over the limit by their characters, because counting tokens is slow."""
    if context is not None and len(text) > context * LONGEST_TOKEN:
        raise too_long(context, f"'{param}' has {len(text)} characters, which is far more. Send it in parts.")
    return text


def too_long(context: int, message: str) -> EngineError:
    """Begins as OpenAI does: programs look for these words."""
    said = f"This model's maximum context length is {context} tokens. {message}"
    return EngineError(400, said, 'context_length_exceeded')


def truncation(requested: object, context: int | None) -> int | None:
    """The limit by `truncate_prompt_tokens`: None refuses texts that are too long, -1 means the context length."""
    if not isinstance(requested, int) or requested == 0:
        return None
    if requested < 0:
        return context
    return requested if context is None else min(requested, context)
