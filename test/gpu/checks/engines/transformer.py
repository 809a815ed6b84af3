"""
The model of the decoder: a transformer with random weights that continues many sequences by one token at a time. It has
what decides the load of a card (weights, a static KV cache, attention over it) and no position encoding.
"""

import math
import time
from dataclasses import dataclass

from accelerator import open_accelerator


@dataclass(frozen=True)
class Shape:
    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    context: int

    @property
    def head(self):
        return self.width // self.heads


LARGE = Shape(layers=16, width=2048, heads=16, kv_heads=8, inner=8192, vocabulary=32_000, context=512)
SMALL = Shape(layers=2, width=128, heads=4, kv_heads=2, inner=256, vocabulary=1_000, context=512)


class Transformer:
    """
    bf16 on `device`, one CUDA graph for each batch size (powers of two up to `slots`) where that is a card; `graph_error`
    says why there are none. Sequences longer than the context overwrite their oldest entries of the cache.
    """

    def __init__(self, device, slots):
        import torch
        import torch.nn.attention

        self.torch = torch
        self.cuda = device == "cuda"
        self.shape = LARGE if self.cuda else SMALL
        self.slots = slots
        self.device = torch.device(device)
        if not self.cuda:
            # The processor is shared with the server that is measured.
            torch.set_num_threads(1)
        with torch.inference_mode():
            self._build()
            self.graphs, self.graph_error = {}, None
            if self.cuda:
                self.pool = torch.cuda.graph_pool_handle()
                try:
                    self.graphs = {batch: self._capture(batch) for batch in self._batches()}
                except RuntimeError as error:
                    # Steps without a graph take longer, and are measured all the same.
                    self.graphs, self.graph_error = {}, str(error)

    def _build(self):
        torch, shape = self.torch, self.shape
        torch.manual_seed(7)

        def random(rows, columns):
            weights = torch.empty(rows, columns, dtype=torch.bfloat16, device=self.device)
            return weights.normal_(std=1 / math.sqrt(columns))

        keys = shape.kv_heads * shape.head
        self.embedding = random(shape.vocabulary, shape.width)
        self.output = random(shape.vocabulary, shape.width)
        self.layers = [
            {
                "qkv": random(shape.width + 2 * keys, shape.width),
                "attention": random(shape.width, shape.width),
                "gate_up": random(2 * shape.inner, shape.width),
                "down": random(shape.width, shape.inner),
            }
            for _ in range(shape.layers)
        ]
        size = (shape.layers, 2, self.slots, shape.kv_heads, shape.context, shape.head)
        self.cache = torch.zeros(size, dtype=torch.bfloat16, device=self.device)
        # Tokens and positions of all slots, and the tokens that follow.
        self.state = torch.zeros(2, self.slots, dtype=torch.long, device=self.device)
        self.next = torch.zeros(self.slots, dtype=torch.long, device=self.device)
        self.rows = torch.arange(self.slots, device=self.device)
        self.places = torch.arange(shape.context, device=self.device)

    @property
    def parameters(self):
        matrices = [self.embedding, self.output, *(matrix for layer in self.layers for matrix in layer.values())]
        return sum(matrix.numel() for matrix in matrices)

    def _batches(self):
        return sorted({min(2**power, self.slots) for power in range((self.slots - 1).bit_length() + 1)})

    def _capture(self, batch):
        torch = self.torch
        attention = torch.nn.attention
        # Those that take a mask and can be captured.
        backends = [attention.SDPBackend.EFFICIENT_ATTENTION, attention.SDPBackend.MATH]
        with attention.sdpa_kernel(backends):
            # Kernels are chosen and their workspaces allocated in a run before the capture.
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._forward(batch)
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            # One graph is replayed at a time, and what it computes lies outside the pool: all of them share one.
            with torch.cuda.graph(graph, pool=self.pool):
                self._forward(batch)
        return graph

    def _forward(self, batch):
        torch, shape = self.torch, self.shape
        functional = torch.nn.functional
        tokens, positions = self.state[0, :batch], self.state[1, :batch]
        rows, at = self.rows[:batch], positions % shape.context
        seen = (self.places <= positions[:, None]).view(batch, 1, 1, shape.context)
        norm = lambda value: functional.rms_norm(value, (shape.width,))  # noqa: E731
        hidden = self.embedding[tokens]
        keys = shape.kv_heads * shape.head
        for index, layer in enumerate(self.layers):
            mixed = functional.linear(norm(hidden), layer["qkv"])
            query, key, value = mixed.split([shape.width, keys, keys], dim=-1)
            cached = self.cache[index, :, :batch]
            cached[0][rows, :, at] = key.view(batch, shape.kv_heads, shape.head)
            cached[1][rows, :, at] = value.view(batch, shape.kv_heads, shape.head)
            # Query heads that share a KV head stand where a prompt would have its tokens: no copy of the cache is needed.
            query = query.view(batch, shape.kv_heads, shape.heads // shape.kv_heads, shape.head)
            found = functional.scaled_dot_product_attention(query, cached[0], cached[1], attn_mask=seen)
            hidden = hidden + functional.linear(found.reshape(batch, shape.width), layer["attention"])
            gate, up = functional.linear(norm(hidden), layer["gate_up"]).chunk(2, dim=-1)
            hidden = hidden + functional.linear(functional.silu(gate) * up, layer["down"])
        self.next[:batch] = functional.linear(norm(hidden), self.output).argmax(dim=-1)

    def step(self, tokens, positions):
        """The tokens that follow those in the first slots, whose numbers in their sequences are `positions`."""
        torch = self.torch
        count = len(tokens)
        batch = next((batch for batch in self.graphs if batch >= count), count)
        with torch.inference_mode():
            self.state[:, :count] = torch.tensor([tokens, positions])
            if batch in self.graphs:
                self.graphs[batch].replay()
            else:
                self._forward(batch)
            return self.next[:count].tolist()


class FakeTransformer:
    """Numbers instead of a model, for tests without torch; holds memory of the fake card."""

    parameters = 0
    graph_error = None

    def __init__(self, slots):
        self.accelerator = open_accelerator("fake")
        self.memory = self.accelerator.random_weights(2**30)

    def step(self, tokens, positions):
        if max(positions) >= 10 and "stops-decoding" in self.accelerator.faults():
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        time.sleep(0.001)
        return [(token * 31 + 7) % 1000 for token in tokens]


def open_transformer(device, slots):
    return FakeTransformer(slots) if device == "fake" else Transformer(device, slots)
