"""Whether the built-in engine keeps to the memory that is booked for it, for several bookings."""

import json
import re
import threading

from context import GIB, MIB, size_name, size_text
from llama.bench import CHAT, PROMPT_CHARACTERS, Target
from processes import resident_bytes
from report import Failed
from server import InferServer

TOKENS = 32


def memories(context, size):
    """Bookings for the model in bytes; None leaves the choice to infer."""
    if context.device != "cuda":
        return (None, 512 * MIB)
    return (None, 6 * GIB, 12 * GIB, 24 * GIB, 60 * GIB) if size == "8b" else (None, 2 * GIB, 4 * GIB, 16 * GIB)


def name_of(memory):
    return "auto" if memory is None else size_name(memory)


def check_layout(context, subject, check, size, kind, memory):
    """One engine with that booking, while it answers its maximum number of concurrent long prompts."""
    subject.need_card()
    path, _ = subject.model(size, kind)
    entry = {"id": "layout", "engine": "gguf", "source": path, "tasks": ["std/chat-completion"], "idle_ttl": 0}
    more = {**context.sandboxed, **({} if memory is None else {"memory": memory})}
    with InferServer(context.infer, context.folder("layout"), [{**entry, **more}], subject.environment()) as server:
        before = context.card_used()
        seconds = server.load("layout")
        engine = server.engines("layout")[0]
        target = Target("layout", server.port, CHAT, {"authorization": f"Bearer {server.token}"})
        used = _used_by(context, before, engine)
        why = _sized(server)
        length = int(re.match(r"\d+ × (\d+) tokens", why)[1])
        with _Peak(lambda: _used_by(context, before, engine)) as peak:
            for _ in range(2):
                target.send(engine["slots"], TOKENS, "x" * min(PROMPT_CHARACTERS, length // 2))
        booked = memory or _booked(server)
    applied = context.device == "cuda"
    check.measured(
        f"{why} Booked {size_text(booked)}, used {size_text(used)}, at most {size_text(peak.bytes)} under load"
        + ("" if applied else f"; bar not applied on {context.device}"),
        booked=booked,
        used=used,
        peak=peak.bytes,
        slots=engine["slots"],
        load_seconds=round(seconds, 3),
        layout=why,
    )
    check.require(not applied or peak.bytes <= booked, "at most the booked memory was expected")


def _booked(server):
    """
    What was booked when the engine was placed: it was told all but the share of its own process. The booking that the
    API tells has been corrected since.
    """
    engine = server.get("/api/models/layout")["engines"][0]
    own = 256 * MIB if engine["devices"] == ["cpu"] else GIB * len(engine["devices"])
    return int(engine["command"][engine["command"].index("--memory") + 1]) + own


def _used_by(context, before, engine):
    """Bytes on the card since `before`; where the engine does not compute there, its resident memory."""
    return context.card_used() - before if context.device == "cuda" else resident_bytes(engine["pid"])


def _sized(server):
    """The layout that the engine reports: layers on the card, context, and the memory of each."""
    for line in server.get("/api/system/logs?model=layout&source=engine")["lines"]:
        try:
            entry = json.loads(line["message"])
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("message") == "The model is sized":
            return entry["why"]
    raise Failed("the engine does not say how it laid the model out")


class _Peak:
    """Samples a number of bytes every 20 ms and keeps the largest."""

    def __init__(self, read):
        self.read = read
        self.bytes = read()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self):
        while not self.ended.wait(0.02):
            self.bytes = max(self.bytes, self.read())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
