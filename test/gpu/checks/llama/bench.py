"""Token rates of one model on the built-in engine and on llama-server, through infer and without it."""

import os
import random
import statistics
import string
from dataclasses import dataclass, field

from llama.bare_server import BareServer
from report import Skip
from server import InferServer
from streams import load

CONTEXT_LENGTH = 2560
PROMPT_CHARACTERS = 2048
# Of the template around one message, and the token that begins every text.
PROMPT_TOKENS = PROMPT_CHARACTERS + 20
LEAST_RATIO = 0.95
CHAT = "/std/v1/chat/completions"
# Seconds of a token of one stream on a card, to tell whether the time is enough.
TOKEN_SECONDS = {"1b": 0.004, "8b": 0.008}
OPENING_SECONDS = {"1b": 40, "8b": 70}


@dataclass
class Target:
    """Where requests are sent. `name` is `builtin`, `server` (llama-server through infer) or `bare` (without it)."""

    name: str
    port: int
    path: str
    headers: dict = field(default_factory=dict)

    def send(self, streams, tokens, text="Count on."):
        body = {"model": self.name, "messages": [{"role": "user", "content": text}], "temperature": 0}
        result = load("127.0.0.1", self.port, self.path, self.headers, body, streams, tokens)
        if result["errors"]:
            raise RuntimeError(f"{self.name}: {len(result['errors'])} of {streams} streams failed: {result['errors'][0]}")
        if result["tokens"] != streams * tokens:
            raise RuntimeError(f"{self.name}: {result['tokens']} of {streams * tokens} tokens came")
        return result


class Bench:
    def __init__(self, context, subject, size, kind, counts):
        self.context = context
        self.subject = subject
        self.size, self.kind, self.counts = size, kind, counts
        self.targets = None
        self.failed = None
        self.server = self.bare = None
        self.seconds = {}
        self.measured = {}

    def close(self):
        for process in (self.bare, self.server):
            if process is not None:
                process.stop()

    def needed(self, count=None):
        """Seconds that a check needs: of the rates of so many streams, or of anything else that asks all targets."""
        if self.context.device != "cuda":
            return 1
        opening = OPENING_SECONDS.get(self.size, 20) if self.targets is None else 0
        if count is None:
            return opening + 15
        if count in self.measured:
            return 1
        scale = self.context.scale
        seconds = 1 + scale.tokens * TOKEN_SECONDS.get(self.size, 0.004) * (1 + count / 32)
        return opening + 3 * scale.rounds * seconds

    def open(self):
        """Loads the model on all engines, once. Raises what went wrong, and Skip after that."""
        if self.failed:
            raise Skip(f"the engines were not loaded: {self.failed}")
        if self.targets is None:
            self.subject.need_card()
            try:
                self.targets = self._open()
            except Exception as error:
                self.failed = str(error)
                raise
        return self.targets

    def _open(self):
        path, self.seconds["write"] = self.subject.model(self.size, self.kind)
        built, environment = self.subject.build(), self.subject.environment()
        folder = self.context.folder("bench")
        slots = max(self.counts)
        entry = {"source": path, "tasks": ["std/chat-completion"], "concurrency": slots, "context_length": CONTEXT_LENGTH}
        entry |= self.context.sandboxed
        engines = {"builtin": "gguf", **({"server": "llama-server"} if built else {})}
        models = [{"id": name, "engine": engine, "idle_ttl": 0, **entry} for name, engine in engines.items()]
        self.server = InferServer(self.context.infer, folder, models, environment)
        self.server.start()
        headers = {"authorization": f"Bearer {self.server.token}"}
        targets = []
        for name in engines:
            self.seconds[name] = self.server.load(name)
            targets.append(Target(name, self.server.port, CHAT, headers))
        if built:
            self.bare = BareServer(built.server, self.command("server"), folder, environment)
            self.seconds["bare"] = self.bare.wait()
            targets.append(Target("bare", self.bare.port, "/v1/chat/completions"))
        for target in targets:
            target.send(slots, 4)
        return targets

    def command(self, name):
        """Program and arguments that infer started the engine of a model with."""
        return self.server.get(f"/api/models/{name}")["engines"][0]["command"]

    def check_load(self, check):
        self.open()
        command = self.command("builtin")
        backend = command[command.index("--gpu") + 1]
        names = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items() if name != "write")
        size = os.path.getsize(self.subject.model(self.size, self.kind)[0])
        speed = size / max(self.seconds["write"], 1e-6) / 1e9
        check.measured(
            f"{names}; {size / 1e9:.1f} GB of random weights written at {speed:.1f} GB/s; the built-in engine computes on {backend}",
            backend=backend,
            bytes=size,
            **{f"{name}_seconds": round(seconds, 3) for name, seconds in self.seconds.items()},
        )
        check.require(self.context.device != "cuda" or backend == "cuda", "the built-in engine was expected to compute on cuda")

    def rates(self, count):
        """Tokens a second by target at `count` streams: medians of rounds in alternation. With times in ms."""
        if count not in self.measured:
            rounds = [
                {target.name: target.send(count, self.context.scale.tokens) for target in self.open()}
                for _ in range(self.context.scale.rounds)
            ]
            self.measured[count] = {
                name: {
                    "tokens_per_second": statistics.median(each[name]["tokens"] / each[name]["seconds"] for each in rounds),
                    "first_token_ms": 1000 * statistics.median(at for each in rounds for at in each[name]["ttft"]),
                    "gap_ms": 1000 * statistics.median(at for each in rounds for at in each[name]["gaps"]),
                }
                for name in rounds[0]
            }
        return self.measured[count]

    def check_streams(self, check, count):
        rates = self.rates(count)
        parts = [f"{name} {of['tokens_per_second']:.0f} ({of['first_token_ms']:.0f} ms to the first)" for name, of in rates.items()]
        numbers = {f"{name}_{key}": round(value, 3) for name, of in rates.items() for key, value in of.items()}
        check.measured(f"tokens/s: {', '.join(parts)}", **numbers)

    def check_ratio(self, check, count):
        rates = self.rates(count)
        if "server" not in rates:
            raise Skip("there is no llama-server to compare with: llama.cpp was not built")
        self._compare(check, {name: of["tokens_per_second"] for name, of in rates.items()})

    def check_prompt(self, check):
        """Prompts that have nothing in common, one at a time, until the first token of the answer."""
        random_text = random.Random(self.size)
        letters = string.ascii_letters + string.digits
        seconds = {target.name: [] for target in self.open()}
        for _ in range(2 * self.context.scale.rounds - 1):
            text = "".join(random_text.choices(letters, k=PROMPT_CHARACTERS))
            for target in self.targets:
                seconds[target.name].append(target.send(1, 1, text)["ttft"][0])
        speeds = {name: PROMPT_TOKENS / statistics.median(times) for name, times in seconds.items()}
        if "server" in speeds:
            self._compare(check, speeds, bar=False)
        else:
            check.measured(f"builtin {speeds['builtin']:.0f} tokens/s of prompts of {PROMPT_TOKENS}", builtin=speeds["builtin"])

    def _compare(self, check, speeds, bar=True):
        ratio = speeds["builtin"] / speeds["server"]
        applied = bar and self.context.device == "cuda"
        note = "" if applied or not bar else f"; bar {LEAST_RATIO} not applied on {self.context.device}"
        listed = ", ".join(f"{name} {speed:.0f}" for name, speed in speeds.items())
        numbers = {name: round(speed, 2) for name, speed in speeds.items()}
        check.measured(f"{ratio:.2f} of llama-server (tokens/s: {listed}){note}", ratio=round(ratio, 4), **numbers)
        check.require(not applied or ratio >= LEAST_RATIO, f"at least {LEAST_RATIO} was expected")
