"""
Writes GGUF files of the llama architecture with random weights, for measuring: real shapes, no download.

Greedy answers (temperature 0) never end by themselves: the output rows of tokens that end a text, and of single bytes,
are zero, and the largest of the other logits is positive. Every character of a prompt is one token, and every token of
an answer is a whole word, so that each makes one piece of a stream.
"""

import os
import random
import struct
import sys
from dataclasses import dataclass

ALIGNMENT = 32
F32, F16, Q8_0 = 0, 1, 8
TYPES = {"f16": F16, "q8_0": Q8_0}
BLOCK_BYTES = 2**20
CHARACTERS = [chr(code) for code in range(33, 127)]
TEMPLATE = (
    "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + "
    "'<|im_end|>\\n' }}{% endfor -%}{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}"
)


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    feed_forward: int
    heads: int
    kv_heads: int
    vocabulary: int
    context: int


SHAPES = {
    "tiny": Shape(layers=2, width=64, feed_forward=128, heads=4, kv_heads=2, vocabulary=1024, context=8192),
    "1b": Shape(layers=16, width=2048, feed_forward=8192, heads=32, kv_heads=8, vocabulary=32_000, context=131_072),
    "8b": Shape(layers=32, width=4096, feed_forward=14_336, heads=32, kv_heads=8, vocabulary=32_000, context=131_072),
}


def vocabulary(count):
    """Texts, types and scores of the tokens, and how many at the beginning an answer must never have."""
    tokens = [("<unk>", 2, 0.0), ("<s>", 3, 0.0), ("</s>", 3, 0.0)]
    tokens += [(f"<0x{byte:02X}>", 6, 0.0) for byte in range(256)]
    tokens += [("<|im_start|>", 3, 0.0), ("<|im_end|>", 3, 0.0)]
    silent = len(tokens)
    tokens += [("\u2581", 1, -1.0)] + [(character, 1, -2.0) for character in CHARACTERS]
    # No part of such a word is a token, so that no prompt is ever read as one.
    for number in range(count - len(tokens)):
        letters = "".join(chr(97 + number // 26**place % 26) for place in range(4))
        tokens.append((f"\u2581{letters}", 1, -50.0))
    return tokens, silent


def metadata(name, shape, file_type, tokens):
    """Name, type and value, in the order of the file. Types: u32 4, f32 6, bool 7, string 8, or a list of one of them."""
    place = {text: at for at, (text, _, _) in enumerate(tokens)}
    head = shape.width // shape.heads
    return [
        ("general.architecture", 8, "llama"),
        ("general.name", 8, f"random-{name}"),
        ("general.file_type", 4, {F16: 1, Q8_0: 7}[file_type]),
        ("llama.vocab_size", 4, len(tokens)),
        ("llama.context_length", 4, shape.context),
        ("llama.embedding_length", 4, shape.width),
        ("llama.block_count", 4, shape.layers),
        ("llama.feed_forward_length", 4, shape.feed_forward),
        ("llama.attention.head_count", 4, shape.heads),
        ("llama.attention.head_count_kv", 4, shape.kv_heads),
        ("llama.rope.dimension_count", 4, head),
        ("llama.rope.freq_base", 6, 500_000.0),
        ("llama.attention.layer_norm_rms_epsilon", 6, 1e-5),
        ("tokenizer.ggml.model", 8, "llama"),
        ("tokenizer.ggml.pre", 8, "default"),
        ("tokenizer.ggml.tokens", [8], [text for text, _, _ in tokens]),
        ("tokenizer.ggml.scores", [6], [score for _, _, score in tokens]),
        ("tokenizer.ggml.token_type", [5], [kind for _, kind, _ in tokens]),
        ("tokenizer.ggml.bos_token_id", 4, place["<s>"]),
        ("tokenizer.ggml.eos_token_id", 4, place["<|im_end|>"]),
        ("tokenizer.ggml.unknown_token_id", 4, place["<unk>"]),
        ("tokenizer.ggml.add_bos_token", 7, True),
        ("tokenizer.ggml.add_eos_token", 7, False),
        ("tokenizer.ggml.add_space_prefix", 7, False),
        ("tokenizer.chat_template", 8, TEMPLATE),
    ]


def tensors(shape, file_type):
    """Name, dimensions (fastest first) and type, in the order of the file."""
    width, hidden, kv = shape.width, shape.feed_forward, shape.width // shape.heads * shape.kv_heads
    yield "token_embd.weight", (width, shape.vocabulary), file_type
    yield "output_norm.weight", (width,), F32
    yield "output.weight", (width, shape.vocabulary), file_type
    for layer in range(shape.layers):
        for name, dimensions in (
            ("attn_norm", (width,)),
            ("attn_q", (width, width)),
            ("attn_k", (width, kv)),
            ("attn_v", (width, kv)),
            ("attn_output", (width, width)),
            ("ffn_norm", (width,)),
            ("ffn_gate", (width, hidden)),
            ("ffn_up", (width, hidden)),
            ("ffn_down", (hidden, width)),
        ):
            yield f"blk.{layer}.{name}.weight", dimensions, F32 if len(dimensions) == 1 else file_type


def tensor_bytes(dimensions, kind):
    elements = 1
    for dimension in dimensions:
        elements *= dimension
    return {F32: elements * 4, F16: elements * 2, Q8_0: elements // 32 * 34}[kind]


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def random_block(file_type, seed):
    """
    Random weights with a standard deviation near 0.02, which keeps all activations finite. F16: sign and fraction are
    random below the fixed exponent 2⁻⁶. Q8_0: 32 random numbers of 8 bits behind the fixed scale 0.00027.
    """
    kept, fixed = (b"\xff\x83", b"\x00\x24") if file_type == F16 else (b"\0\0" + b"\xff" * 32, b"\x6d\x0c" + b"\0" * 32)
    times = BLOCK_BYTES // len(kept)
    number = int.from_bytes(random.Random(seed).randbytes(times * len(kept)), "little")
    number = number & int.from_bytes(kept * times, "little") | int.from_bytes(fixed * times, "little")
    return memoryview(number.to_bytes(times * len(kept), "little"))


def encoded(kind, value):
    if isinstance(kind, list):
        return struct.pack("<IQ", kind[0], len(value)) + b"".join(encoded(kind[0], item) for item in value)
    if kind == 8:
        text = value.encode()
        return struct.pack("<Q", len(text)) + text
    return struct.pack({4: "<I", 5: "<i", 6: "<f", 7: "<?"}[kind], value)


def header(name, shape, file_type, listed):
    tokens, silent = vocabulary(shape.vocabulary)
    values = metadata(name, shape, file_type, tokens)
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(listed), len(values))]
    for key, kind, value in values:
        number = 9 if isinstance(kind, list) else kind
        parts.append(encoded(8, key) + struct.pack("<I", number) + encoded(kind, value))
    offset = 0
    for key, dimensions, kind in listed:
        sizes = struct.pack(f"<{len(dimensions)}Q", *dimensions)
        parts.append(encoded(8, key) + struct.pack("<I", len(dimensions)) + sizes + struct.pack("<IQ", kind, offset))
        offset += padded(tensor_bytes(dimensions, kind))
    data = b"".join(parts)
    return data.ljust(padded(len(data)), b"\0"), silent


def write_random_gguf(path, size, kind="f16", seed=1):
    """
    Writes a file of `size` (`tiny`, `1b`, `8b`) and `kind` (`f16`, `q8_0`), the same bytes for the same seed. Returns its
    size in bytes.
    """
    shape, file_type = SHAPES[size], TYPES[kind]
    block = random_block(file_type, seed)
    unit = 34 if file_type == Q8_0 else 2
    listed = list(tensors(shape, file_type))
    start, silent = header(f"{size}-{kind}", shape, file_type, listed)
    places = random.Random(seed)
    with open(path, "wb", buffering=0) as file:
        write_all(file, start)
        for name, dimensions, tensor_type in listed:
            left = tensor_bytes(dimensions, tensor_type)
            end = padded(left) - left
            if tensor_type == F32:
                write_all(file, struct.pack("<f", 1.0) * dimensions[0])
                left = 0
            elif name == "output.weight":
                zeros = tensor_bytes((dimensions[0], silent), tensor_type)
                write_all(file, bytes(zeros))
                left -= zeros
            # Each tensor begins elsewhere in the block, so that no two layers are equal.
            at = places.randrange(len(block) // unit) * unit
            while left > 0:
                piece = block[at : at + left]
                write_all(file, piece)
                left -= len(piece)
                at = 0
            write_all(file, bytes(end))
    return os.path.getsize(path)


def write_all(file, data):
    view = memoryview(data)
    while len(view) > 0:
        view = view[file.write(view) :]


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[2] not in SHAPES or (sys.argv[3:] or ["f16"])[0] not in TYPES:
        sys.exit("usage: random_gguf.py FILE tiny|1b|8b [f16|q8_0]")
    print(write_random_gguf(*sys.argv[1:]))
