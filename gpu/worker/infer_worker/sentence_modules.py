"""Reads the folders of sentence-transformers: what follows the transformer."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POOLING = ('cls', 'max', 'mean', 'mean_sqrt_len_tokens', 'lasttoken')
_FIELDS = {
    'pooling_mode_cls_token': 'cls',
    'pooling_mode_max_tokens': 'max',
    'pooling_mode_mean_tokens': 'mean',
    'pooling_mode_mean_sqrt_len_tokens': 'mean_sqrt_len_tokens',
    'pooling_mode_lasttoken': 'lasttoken',
}


@dataclass(frozen=True)
class Dense:
    """A linear layer with an activation function after the pooling."""

    folder: str

    def load(self, device: Any) -> Any:
        import torch

        config = _read(self.folder, 'config.json')
        layer = torch.nn.Linear(config['in_features'], config['out_features'], bias=config.get('bias', True))
        safe = os.path.join(self.folder, 'model.safetensors')
        if os.path.exists(safe):
            from safetensors.torch import load_file

            weights = load_file(safe)
        else:
            weights = torch.load(os.path.join(self.folder, 'pytorch_model.bin'), map_location='cpu', weights_only=True)
        layer.load_state_dict({name.removeprefix('linear.'): tensor for name, tensor in weights.items()})
        name = str(config.get('activation_function', 'torch.nn.modules.activation.Tanh')).rsplit('.', 1)[-1]
        return torch.nn.Sequential(layer.float(), getattr(torch.nn, name)()).to(device).eval()


@dataclass(frozen=True)
class SentenceModules:
    transformer: str
    """Folder of the transformer."""
    pooling: tuple[str, ...] = ('mean',)
    """How the vectors of the tokens become one; the results of several ways are joined."""
    dense: tuple[Dense, ...] = ()
    longest: int | None = None
    """The most tokens of a text."""


def read_modules(model: str) -> SentenceModules:
    """
    Reads `modules.json`; a folder without it is a transformer with mean pooling. Raises ValueError for a module whose
    effect is unknown, because the vectors would be wrong without it.
    """
    if not os.path.exists(os.path.join(model, 'modules.json')):
        return SentenceModules(model)
    transformer, pooling, dense = model, ('mean',), []
    for module in _read(model, 'modules.json'):
        kind = str(module['type']).rsplit('.', 1)[-1]
        folder = os.path.join(model, module['path']) if module['path'] else model
        if kind == 'Transformer':
            transformer = folder
        elif kind == 'Pooling':
            pooling = pooling_of(_read(folder, 'config.json'))
        elif kind == 'Dense':
            dense.append(Dense(folder))
        elif kind != 'Normalize':
            raise ValueError(f"The model has the module '{module['type']}', which is not supported.")
    longest = None
    if os.path.exists(os.path.join(transformer, 'sentence_bert_config.json')):
        longest = _read(transformer, 'sentence_bert_config.json').get('max_seq_length')
    return SentenceModules(transformer, pooling, tuple(dense), longest)


def pooling_of(config: dict) -> tuple[str, ...]:
    """The ways of pooling in `1_Pooling/config.json`, in both of its forms. Raises ValueError for others."""
    named = config.get('pooling_mode')
    if named is not None:
        names = (named,) if isinstance(named, str) else tuple(named)
    else:
        names = tuple(_FIELDS.get(field, field) for field in config if field.startswith('pooling_mode_') and config[field])
    unknown = [name for name in names if name not in POOLING]
    if unknown or not names:
        raise ValueError(f"The pooling '{unknown[0] if unknown else 'none'}' is not supported; {', '.join(POOLING)} are.")
    return names


def _read(folder: str, name: str) -> Any:
    return json.loads(Path(folder, name).read_text(encoding='utf-8'))
