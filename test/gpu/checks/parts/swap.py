"""How fast models are loaded, and how fast the driver moves a loaded one to host memory and back (parking)."""

import json
import os
import subprocess
import threading
import time

from context import GIB, MIB, size_name, size_text, until
from engines.record import read_record
from page_cache import cached_share, drop_from_page_cache
from parking import Parking, Refused, Times
from processes import available_bytes, innermost, resident_bytes, with_text
from report import Failed, Skip
from server import InferServer

MOST_PARKING_SECONDS = 2.0
PARKED_SIZE = 16 * GIB
# A slower disk would take the time of all other checks.
LEAST_WRITTEN_BYTES_A_SECOND = 0.3 * GIB
MOST_CACHED_SHARE = 0.02


def run(context):
    for size in context.scale.weights:
        context.check(
            f"swap.park.{size_name(size)}", lambda check, size=size: park(context, check, size), 20 + 2 * size / GIB
        )
    folder = context.folder("swap")
    for size in context.scale.files:
        name = size_name(size)
        path = os.path.join(folder, f"{name}.safetensors")
        if context.check(f"swap.file.{name}", lambda check, size=size: write_weights(check, path, size), 2 + size / GIB):
            for source in ("cold", "cached"):
                context.check(
                    f"swap.load.{name}.{source}",
                    lambda check, size=size, source=source: load(context, check, path, size, source),
                    20 + size / GIB,
                )
            os.remove(path)


def write_weights(check, path, size):
    """Writes bf16 weights in tensors of 256 MiB, all with the same random content: only the time to read them counts."""
    free = os.statvfs(os.path.dirname(path))
    if free.f_bavail * free.f_frsize < size + 2 * GIB:
        raise Skip(f"{size_text(free.f_bavail * free.f_frsize)} are free on the disk")
    piece = min(size, 256 * MIB)
    block = b"".join(bytes((byte, 0x3C)) for byte in os.urandom(64 * 1024))
    tensors = {
        f"blocks.{at}": {"dtype": "BF16", "shape": [piece // 2], "data_offsets": [at * piece, (at + 1) * piece]}
        for at in range(size // piece)
    }
    head = json.dumps(tensors).encode()
    head += b" " * (-len(head) % 8)
    began = time.monotonic()
    with open(path, "wb", buffering=0) as file:
        file.write(len(head).to_bytes(8, "little") + head)
        large = block * (8 * MIB // len(block))
        whole = left = (size // piece) * piece
        while left > 0:
            left -= file.write(large[: min(left, len(large))])
            # Synced meanwhile: a sync of everything at the end cannot be given up.
            if left % GIB == 0:
                os.fsync(file.fileno())
                seconds = time.monotonic() - began
                if seconds > 10 + (whole - left) / LEAST_WRITTEN_BYTES_A_SECOND:
                    os.remove(path)
                    raise Skip(f"the disk takes {(whole - left) / GIB / seconds:.2f} GiB/s")
    seconds = time.monotonic() - began
    check.measured(f"{size / GIB / seconds:.2f} GiB/s written", seconds=seconds)


def load(context, check, path, size, source):
    """One load through infer, from the request to a model that is ready, and of that the engine's own reading."""
    folder = context.folder("load")
    record = os.path.join(folder, "record")
    command = context.engine("holder", "--socket", "{socket}", "--file", path, "--record", record)
    if source == "cold":
        drop_from_page_cache(path)
        cached = cached_share(path)
        if cached > MOST_CACHED_SHARE:
            raise Skip(f"{100 * cached:.0f} % of the file stay in the page cache, so a load from the disk cannot be measured")
    else:
        subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
    with InferServer(context.infer, folder, [context.model("checks/file", command, size)], context.environment) as server:
        seconds = server.load("checks/file")
    loaded = read_record(record, "loaded")[-1]
    check.measured(
        f"ready after {seconds:.1f} s: {loaded['seconds']:.2f} s for the weights ({size / GIB / loaded['seconds']:.2f} GiB/s), "
        f"{loaded['import_seconds']:.1f} s for starting Python and torch",
        ready_seconds=seconds,
        weights_seconds=loaded["seconds"],
        import_seconds=loaded["import_seconds"],
    )


class Peak:
    """The most host memory in use while a block runs, in bytes more than before: of the whole machine and of the process."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        self.available, self.resident = available_bytes(), resident_bytes(self.pid)
        self.machine = self.process = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        while not self.ended.wait(0.02):
            self.machine = max(self.machine, self.available - available_bytes())
            self.process = max(self.process, resident_bytes(self.pid) - self.resident)

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def engine_pid(record):
    """
    The process id of the engine as this process sees it: engines run in a process namespace of their own. The driver's
    list is not used, because its numbers may belong to another namespace.
    """
    found = innermost(with_text(record))
    if len(found) != 1:
        raise Skip(f"one process of the engine was expected, {len(found)} were found")
    return found[0]


def park(context, check, size):
    """Parks and restores a loaded engine of infer twice; the second time has its host memory already in the page tables."""
    if size > 0.9 * context.card_total():
        raise Skip(f"the card has {size_text(context.card_total())}")
    if size + 4 * GIB > available_bytes() and context.device == "cuda":
        raise Skip(f"{size_text(available_bytes())} of host memory are available")
    folder = context.folder("park")
    record = os.path.join(folder, "record")
    command = context.engine("holder", "--socket", "{socket}", "--bytes", size, "--record", record)
    model = context.model("checks/parked", command, size)
    with InferServer(context.infer, folder, [model], context.environment) as server:
        before = context.card_used()
        load_seconds = server.load("checks/parked")
        answer = server.embed("checks/parked")
        pid = engine_pid(record)
        rounds = []
        try:
            parking = Parking()
            for _ in range(2):
                rounds.append(park_once(context, parking, pid, before))
                again = server.embed("checks/parked")
                if again.text != answer.text:
                    raise Failed(f"the engine answered otherwise after it was restored: {again.error}")
        except Refused as refused:
            if refused.call in ("cuCheckpointProcessRestore", "cuCheckpointProcessUnlock"):
                raise Failed(f"parked, but not restored: {refused}") from refused
            raise Skip(f"refused here: {refused}") from refused
    best = min(rounds, key=lambda one: one["park"] + one["restore"])
    check.measured(
        f"parked in {best['park']:.2f} s, restored in {best['restore']:.2f} s (loading took {load_seconds:.1f} s); "
        f"{size_text(best['left'])} stayed on the card, {size_text(best['machine'])} of host memory; same answer",
        rounds=rounds,
        load_seconds=load_seconds,
    )
    check.require(best["left"] <= max(GIB, size // 10), "at most a tenth or 1 GiB was expected to stay on the card")
    if size <= PARKED_SIZE:
        slower = max(best["park"], best["restore"])
        check.require(slower <= MOST_PARKING_SECONDS, f"at most {MOST_PARKING_SECONDS:.0f} s each way were expected")


def park_once(context, parking, pid, before):
    times = Times()
    with Peak(pid) as peak:
        parking.park(pid, times)
        state = parking.state(pid)
        freed = until(lambda: context.card_used() - before < GIB // 2, 3, 0.002)
        left = max(0, context.card_used() - before)
        parking.restore(pid, times)
    return {
        **vars(times),
        "park": times.lock + times.checkpoint,
        "restore": times.restore + times.unlock,
        "state": state,
        "left": left,
        "freed_seconds": freed,
        "machine": peak.machine,
        "process": peak.process,
    }
