"""What every part of the checks needs: the card, the executable, folders, sizes, and how engines are written down as models."""

import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass

GIB = 2**30
MIB = 2**20
HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True)
class Scale:
    """How much the checks use. `full` is for a card, `quick` for tests without one."""

    weights: tuple = (1 * GIB, 8 * GIB, 16 * GIB, 40 * GIB)
    files: tuple = (1 * GIB, 8 * GIB, 16 * GIB)
    repeats: int = 20
    free_seconds: float = 30
    streams: tuple = (64, 256)
    rounds: int = 3
    tokens: int = 200
    step_ms: int = 20
    jobs: int = 200
    work_seconds: float = 0.05
    llama: str = "1b"


FULL = Scale()
QUICK = Scale(
    weights=(1 * GIB, 2 * GIB),
    files=(8 * 2**20,),
    repeats=3,
    free_seconds=6,
    streams=(4,),
    rounds=1,
    tokens=20,
    step_ms=5,
    jobs=12,
    work_seconds=0.02,
    llama="tiny",
)


class Context:
    """
    `nvml` is the driver's own answer, `infer` the executable, `device` what engines compute on (`cuda`, `cpu`, `fake`).
    `folder(name)` makes a new empty folder that is removed at the end.
    """

    def __init__(self, *, report, nvml, infer, device, scale, sources, keep=False):
        self.report = report
        self.nvml = nvml
        self.infer = infer
        self.device = device
        self.scale = scale
        self.sources = sources
        self.keep = keep
        self.root = tempfile.mkdtemp(prefix="infer-gpu-")
        self.budget = None
        # The level for engines; None leaves it to infer.
        self.sandbox = None

    def close(self):
        if not self.keep:
            shutil.rmtree(self.root, ignore_errors=True)

    def folder(self, name):
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self.root)

    def check(self, name, function, seconds=1.0, limit=None):
        return self.report.run(name, function, self.budget, seconds, limit)

    @property
    def environment(self):
        """The environment of the server: where programs and libraries are found, and a cache below our own folder."""
        kept = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "LANG", "TMPDIR")
        cache = os.path.join(self.root, "cache")
        return {**{name: os.environ[name] for name in kept if name in os.environ}, "INFER_CACHE_DIR": cache}

    def engine(self, name, *arguments):
        """Program and arguments of one of our check engines."""
        program = os.path.join(HERE, "engines", f"{name}.py")
        return [sys.executable, program, "--device", self.device, *map(str, arguments)]

    @property
    def sandboxed(self):
        """
        What an entry of infer.yaml says about the sandbox of its engine: its level, unless infer chooses, and our folder,
        where engines write records that the checks read, and where llama.cpp is built. The fake card is a folder of files.
        """
        fake = os.environ.get("INFER_FAKE_CARD") if self.device == "fake" else None
        return {
            "sandbox_write": [self.root, *([fake] if fake else [])],
            # The pretended llama-server is a script beside these files.
            **({"sandbox_read": [HERE, sys.prefix]} if fake else {}),
            **({"sandbox": self.sandbox} if self.sandbox else {}),
        }

    def model(self, model_id, command, memory, **more):
        """An entry of infer.yaml for an engine of the checks that answers embeddings, one request at a time."""
        fake = {"INFER_FAKE_CARD": os.environ.get("INFER_FAKE_CARD", "")} if self.device == "fake" else {}
        return {
            "id": model_id,
            "engine": "custom",
            "command": command,
            "memory": int(memory),
            "tasks": ["std/embeddings"],
            "concurrency": 1,
            "idle_ttl": 0,
            "env": {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **fake},
            **self.sandboxed,
            **more,
        }

    def require_on_card(self, check, condition, otherwise):
        """As check.require for bars of time, which hold on a card only: elsewhere the figure says that it did not count."""
        if self.device == "cuda":
            check.require(condition, otherwise)
        else:
            check.figure += f"; bar '{otherwise}' not applied on {self.device}"

    def card_used(self):
        return self.nvml.used_bytes(0)

    def card_total(self):
        return self.nvml.card(0).total_bytes


def until(condition, seconds, step=0.005):
    """Seconds until `condition()` held, or None when it did not within `seconds`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(step)
    return time.monotonic() - began


def size_name(size):
    """`16gb` for 16 GiB, `8mb` for 8 MiB: for names of checks."""
    return f"{size // GIB}gb" if size >= GIB else f"{size // 2**20}mb"


def size_text(size):
    return f"{size / GIB:.2f} GiB"


def percentile(ordered, share):
    """Of ascending numbers the one below which `share` (0 to 1) of them lie."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def distribution(values, unit="s", scale=1.0):
    """`p50 0.6 s, p90 0.9 s, max 1.2 s of 20`, and the same numbers by name."""
    ordered = sorted(value * scale for value in values)
    numbers = {f"p{round(100 * share)}": percentile(ordered, share) for share in (0.5, 0.9, 0.99)}
    numbers |= {"max": ordered[-1], "count": len(ordered)}
    text = f"p50 {numbers['p50']:.3g} {unit}, p90 {numbers['p90']:.3g} {unit}, max {numbers['max']:.3g} {unit} of {len(ordered)}"
    return text, {name: round(value, 6) for name, value in numbers.items()}
