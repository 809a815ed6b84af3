"""
An engine that decodes: `POST /v1/chat/completions` streams as many tokens as `max_tokens` says, from a transformer with
random weights. All active slots get one token in each step (continuous batching), and a step takes at least `--step-ms`,
so that rates are those of a model of 8 to 70 billion parameters. A prompt counts as one token.
"""

import asyncio
import json
import os
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from engine import engine_arguments, run_engine  # noqa: E402
from record import Record  # noqa: E402
from transformer import open_transformer  # noqa: E402


class Stream:
    """One request: its token and the number of the token in its sequence, and how many tokens it still gets."""

    def __init__(self, answer, prompt, tokens):
        self.answer = answer
        self.token = zlib.crc32(prompt.encode()) % 1000
        self.position = 0
        self.left = tokens
        self.disconnected = False
        self.ended = asyncio.Event()


class Sums:
    """What the steps since the last entry of the record took, in seconds."""

    def __init__(self):
        self.steps = self.tokens = 0
        self.compute = self.longest_compute = 0.0
        self.total = self.longest = 0.0

    def add(self, tokens, compute, total):
        self.steps += 1
        self.tokens += tokens
        self.compute += compute
        self.longest_compute = max(self.longest_compute, compute)
        self.total += total
        self.longest = max(self.longest, total)


class Decoder:
    """
    A thread owns the slots and decodes. The event loop owns the connections: it adds streams to `waiting`, sends the
    tokens of each step, and marks streams whose clients have disconnected, which frees their slots.
    """

    def __init__(self, options, record):
        self.options = options
        self.record = record
        self.slots = [None] * options.slots
        self.waiting = []
        self.changed = threading.Condition()
        self.streams = 0

    def load(self):
        began = time.monotonic()
        self.model = open_transformer(self.options.device, self.options.slots)
        # The first steps of a batch size are slower: they are not for a measured stream.
        for count in (1, self.options.slots):
            self.model.step([1] * count, [0] * count)
        self.record.add(
            "loaded",
            seconds=time.monotonic() - began,
            parameters=self.model.parameters,
            graph_error=self.model.graph_error,
        )
        threading.Thread(target=self.decode, daemon=True).start()

    def decode(self):
        try:
            while True:
                self.decode_until_idle()
        except BaseException as error:
            print(f"The decoder failed: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)

    def decode_until_idle(self):
        """Waits for streams and decodes until none is left; then records the sums."""
        with self.changed:
            self.changed.wait_for(lambda: self.waiting)
        sums = Sums()
        while self.fill_slots():
            began = time.monotonic()
            # Up to the last slot in use: the model computes the first slots, as many as there are in a batch.
            last = max(at for at, stream in enumerate(self.slots) if stream)
            row = self.slots[: last + 1]
            next_tokens = self.model.step(
                [stream.token if stream else 0 for stream in row], [stream.position if stream else 0 for stream in row]
            )
            computed = time.monotonic() - began
            produced = []
            for at, stream in enumerate(row):
                if stream is None:
                    continue
                stream.token = next_tokens[at]
                stream.position += 1
                stream.left -= 1
                produced.append((stream, stream.token, stream.left == 0))
                if stream.left == 0:
                    self.slots[at] = None
            time.sleep(max(0.0, began + self.options.step_ms / 1000 - time.monotonic()))
            sums.add(len(produced), computed, time.monotonic() - began)
            self.loop.call_soon_threadsafe(self.send, produced)
        self.record.add("steps", **vars(sums))

    def fill_slots(self):
        """Frees the slots of disconnected clients and fills free ones. Returns whether any is in use."""
        for at, stream in enumerate(self.slots):
            if stream and stream.disconnected:
                self.slots[at] = None
                self.record.add("disconnected", tokens=stream.position)
        with self.changed:
            for at, stream in enumerate(self.slots):
                if stream is None and self.waiting:
                    self.slots[at] = self.waiting.pop(0)
        return any(self.slots)

    def send(self, produced):
        for stream, token, last in produced:
            if stream.disconnected:
                continue
            if stream.answer.closed:
                stream.disconnected = True
                stream.ended.set()
                continue
            reason = b'"length"' if last else b"null"
            stream.answer.send(b'%b{"content":" %d"},"finish_reason":%b}]}\n\n' % (stream.head, token, reason))
            if last:
                stream.ended.set()

    async def handle(self, request, answer):
        if request.path != "/v1/chat/completions" or request.method != "POST":
            return answer.error(f"There is no {request.method} {request.path}", 404)
        body = request.json()
        if not body.get("stream"):
            return answer.error("This engine only streams: send \"stream\": true", 400)
        tokens = body.get("max_tokens") or body.get("max_completion_tokens") or 16
        stream = Stream(answer, json.dumps(body["messages"]), tokens)
        frame = {"id": "chatcmpl-check", "object": "chat.completion.chunk", "created": int(time.time()), "model": body["model"]}
        head = json.dumps(frame, separators=(",", ":"))[:-1]
        stream.head = f'data: {head},"choices":[{{"index":0,"delta":'.encode()
        self.loop = asyncio.get_running_loop()
        self.streams += 1
        try:
            answer.begin_stream()
            answer.send(stream.head + b'{"role":"assistant","content":""},"finish_reason":null}]}\n\n')
            with self.changed:
                self.waiting.append(stream)
                self.changed.notify()
            await stream.ended.wait()
            if stream.disconnected:
                return
            if (body.get("stream_options") or {}).get("include_usage"):
                usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
                answer.send(f'data: {head},"choices":[],"usage":{json.dumps(usage)}}}\n\n'.encode())
            answer.send(b"data: [DONE]\n\n")
        finally:
            self.streams -= 1


def main():
    parser = engine_arguments(__doc__)
    parser.add_argument("--slots", type=int, default=64, help="streams that are decoded at once")
    parser.add_argument("--step-ms", type=float, default=20, help="the least time of a step, milliseconds")
    options = parser.parse_args()
    record = Record(options.record)
    decoder = Decoder(options, record)
    run_engine(options, record, decoder.load, decoder.handle, lambda: decoder.streams)


if __name__ == "__main__":
    main()
