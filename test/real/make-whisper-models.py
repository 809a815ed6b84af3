"""Writes a Whisper model of CTranslate2 in the formats of transformers and of whisper.cpp.

Usage: make-whisper-models.py CTRANSLATE2_FOLDER FOLDER  -> FOLDER/transformers, FOLDER/ggml.bin
Package indexes carry trained weights of Whisper for faster-whisper only; this gives the same weights to the other engines.
"""

import json
import os
import shutil
import struct
import sys

import numpy
import torch
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.convert_slow_tokenizer import bytes_to_unicode

TYPES = {0: '<f4', 1: 'i1', 2: '<i2', 3: '<i4', 4: '<f2'}


def read_weights(file: str) -> dict[str, numpy.ndarray]:
    """Reads `model.bin`: https://github.com/OpenNMT/CTranslate2/blob/master/python/ctranslate2/specs/model_spec.py."""
    with open(file, 'rb') as content:
        data = content.read()
    at = 0

    def number(kind: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f'<{kind}', data, at)
        at += struct.calcsize(f'<{kind}')
        return value

    def name() -> str:
        nonlocal at
        length = number('H')
        at += length
        return data[at - length : at].rstrip(b'\0').decode()

    version, _, _ = number('I'), name(), number('I')
    assert version == 6, version
    weights = {}
    for _ in range(number('I')):
        key = name()
        shape = [number('I') for _ in range(number('B'))]
        kind = numpy.dtype(TYPES[number('B')])
        length = number('I')
        weights[key] = numpy.frombuffer(data, kind, length // kind.itemsize, at).reshape(shape)
        at += length
    return weights


def layer_count(weights: dict[str, numpy.ndarray], side: str) -> int:
    return sum(key.startswith(f'{side}/layer_') and key.endswith('/ffn/linear_0/bias') for key in weights)


def module_weights(weights: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
    """The weights by their names in transformers. Projections of one attention are fused in CTranslate2."""
    found: dict[str, numpy.ndarray] = {}

    def put(source: str, *targets: str) -> None:
        for end, other in (('weight', 'weight'), ('bias', 'bias'), ('gamma', 'weight'), ('beta', 'bias')):
            value = weights.get(f'{source}/{end}')
            if value is not None:
                for target, part in zip(targets, numpy.split(value, len(targets)), strict=True):
                    found[f'model.{target}.{other}'] = part.astype('float32')

    for side in ('encoder', 'decoder'):
        put(f'{side}/layer_norm', f'{side}.layer_norm')
        found[f'model.{side}.embed_positions.weight'] = weights[f'{side}/position_encodings/encodings'].astype('float32')
        for at in range(layer_count(weights, side)):
            old, new = f'{side}/layer_{at}', f'{side}.layers.{at}'
            own = f'{new}.self_attn'
            put(f'{old}/self_attention/layer_norm', f'{own}_layer_norm')
            put(f'{old}/self_attention/linear_0', f'{own}.q_proj', f'{own}.k_proj', f'{own}.v_proj')
            put(f'{old}/self_attention/linear_1', f'{own}.out_proj')
            put(f'{old}/ffn/layer_norm', f'{new}.final_layer_norm')
            put(f'{old}/ffn/linear_0', f'{new}.fc1')
            put(f'{old}/ffn/linear_1', f'{new}.fc2')
            if side == 'decoder':
                put(f'{old}/attention/layer_norm', f'{new}.encoder_attn_layer_norm')
                put(f'{old}/attention/linear_0', f'{new}.encoder_attn.q_proj')
                put(f'{old}/attention/linear_1', f'{new}.encoder_attn.k_proj', f'{new}.encoder_attn.v_proj')
                put(f'{old}/attention/linear_2', f'{new}.encoder_attn.out_proj')
    put('encoder/conv1', 'encoder.conv1')
    put('encoder/conv2', 'encoder.conv2')
    put('decoder/embeddings', 'decoder.embed_tokens')
    # Whisper has no bias there; CTranslate2 adds one of zeros.
    return {key: value for key, value in found.items() if not key.endswith('k_proj.bias')}


def write_transformers(source: str, target: str) -> WhisperForConditionalGeneration:
    with open(f'{source}/config.json', encoding='utf-8') as file:
        facts = json.load(file)
    with open(f'{source}/tokenizer.json', encoding='utf-8') as file:
        special = {token['content']: token['id'] for token in json.load(file)['added_tokens']}
    weights = read_weights(f'{source}/model.bin')
    state = module_weights(weights)
    tokens, width = state['model.decoder.embed_tokens.weight'].shape
    start, end = special['<|startoftranscript|>'], special['<|endoftext|>']
    config = WhisperConfig(
        vocab_size=tokens,
        d_model=width,
        encoder_layers=layer_count(weights, 'encoder'),
        decoder_layers=layer_count(weights, 'decoder'),
        encoder_attention_heads=int(weights['encoder/num_heads']),
        decoder_attention_heads=int(weights['decoder/num_heads']),
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        decoder_start_token_id=start,
        **dict.fromkeys(('bos_token_id', 'eos_token_id', 'pad_token_id'), end),
    )
    model = WhisperForConditionalGeneration(config)
    missing, unexpected = model.load_state_dict({key: torch.from_numpy(value) for key, value in state.items()}, strict=False)
    assert set(missing) <= {'proj_out.weight'} and not unexpected, (missing, unexpected)
    model.tie_weights()
    multilingual = '<|zh|>' in special and tokens > 51_864
    tasks = {name: special[f'<|{name}|>'] for name in ('transcribe', 'translate')}
    languages = {token: id for token, id in special.items() if len(token) in (6, 7) and id in facts['lang_ids']}
    model.generation_config = GenerationConfig(
        alignment_heads=facts['alignment_heads'],
        begin_suppress_tokens=facts['suppress_ids_begin'],
        suppress_tokens=facts['suppress_ids'],
        is_multilingual=multilingual,
        **({'lang_to_id': languages, 'task_to_id': tasks} if multilingual else {}),
        no_timestamps_token_id=special['<|notimestamps|>'],
        prev_sot_token_id=special['<|startofprev|>'],
        max_initial_timestamp_index=50,
        max_length=448,
        return_timestamps=False,
        decoder_start_token_id=start,
        **dict.fromkeys(('bos_token_id', 'eos_token_id', 'pad_token_id'), end),
    )
    model.save_pretrained(target)
    WhisperFeatureExtractor().save_pretrained(target)
    shutil.copy(f'{source}/tokenizer.json', target)
    names = dict.fromkeys(('bos_token', 'eos_token', 'unk_token', 'pad_token'), '<|endoftext|>')
    with open(f'{target}/tokenizer_config.json', 'w', encoding='utf-8') as file:
        json.dump({'tokenizer_class': 'WhisperTokenizer', 'model_max_length': 1024, **names}, file)
    return model


GGML_NAMES = (
    ('model.', ''),
    ('.layers.', '.blocks.'),
    ('self_attn.k_proj', 'attn.key'),
    ('self_attn.q_proj', 'attn.query'),
    ('self_attn.v_proj', 'attn.value'),
    ('self_attn.out_proj', 'attn.out'),
    ('self_attn_layer_norm', 'attn_ln'),
    ('encoder_attn.k_proj', 'cross_attn.key'),
    ('encoder_attn.q_proj', 'cross_attn.query'),
    ('encoder_attn.v_proj', 'cross_attn.value'),
    ('encoder_attn.out_proj', 'cross_attn.out'),
    ('encoder_attn_layer_norm', 'cross_attn_ln'),
    ('final_layer_norm', 'mlp_ln'),
    ('fc1', 'mlp.0'),
    ('fc2', 'mlp.2'),
    ('encoder.layer_norm', 'encoder.ln_post'),
    ('decoder.layer_norm', 'decoder.ln'),
    ('encoder.embed_positions.weight', 'encoder.positional_embedding'),
    ('decoder.embed_positions.weight', 'decoder.positional_embedding'),
    ('embed_tokens', 'token_embedding'),
)


def write_ggml(model: WhisperForConditionalGeneration, tokenizer: str, target: str) -> None:
    """The format of whisper.cpp's `convert-h5-to-ggml.py`: matrices in 16 bits, vectors in 32."""
    config = model.config
    with open(tokenizer, encoding='utf-8') as file:
        described = json.load(file)
    special = {token['id'] for token in described['added_tokens']}
    vocabulary = sorted((id, token) for token, id in described['model']['vocab'].items() if id not in special)
    byte_of = {character: byte for byte, character in bytes_to_unicode().items()}
    filters = WhisperFeatureExtractor().mel_filters.T.astype('<f4')
    with open(target, 'wb') as file:
        audio = (config.max_source_positions, config.d_model, config.encoder_attention_heads, config.encoder_layers)
        text = (config.max_target_positions, config.d_model, config.decoder_attention_heads, config.decoder_layers)
        file.write(struct.pack('<12i', 0x67676D6C, config.vocab_size, *audio, *text, config.num_mel_bins, 1))
        file.write(struct.pack('<2i', *filters.shape) + filters.tobytes())
        file.write(struct.pack('<i', len(vocabulary)))
        for _, token in vocabulary:
            content = bytes(byte_of[character] for character in token)
            file.write(struct.pack('<i', len(content)) + content)
        for key, tensor in model.state_dict().items():
            if key == 'proj_out.weight':
                continue
            for old, new in GGML_NAMES:
                key = key.replace(old, new)
            value = tensor.numpy()
            if key in ('encoder.conv1.bias', 'encoder.conv2.bias'):
                value = value.reshape(-1, 1)
            halves = value.ndim > 1 and not key.endswith(('conv1.bias', 'conv2.bias', 'positional_embedding'))
            file.write(struct.pack('<3i', value.ndim, len(key), int(halves)))
            file.write(struct.pack(f'<{value.ndim}i', *reversed(value.shape)) + key.encode())
            file.write(value.astype('<f2' if halves else '<f4').tobytes())


if __name__ == '__main__':
    origin, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    whisper = write_transformers(origin, f'{folder}/transformers')
    write_ggml(whisper, f'{origin}/tokenizer.json', f'{folder}/ggml.bin')
