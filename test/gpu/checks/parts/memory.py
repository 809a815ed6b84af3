"""Memory of the card: what is booked against what is used, when freed memory shows, evictions, and what happens without room."""

import os
import subprocess
import threading
import time

from context import GIB, MIB, distribution, size_name, size_text, until
from engines.record import read_record
from processes import end_with_parent, is_alive, with_text
from report import Failed, Skip
from server import InferServer

MOST_SECONDS_UNTIL_FREE = 5.0
# The driver and torch take some memory besides the weights.
OVERHEAD = GIB


def run(context):
    sizes = [size for size in context.scale.weights if size < 0.8 * context.card_total()]
    folder = context.folder("memory")
    models = [holder(context, folder, f"checks/{size_name(size)}", size) for size in sizes]
    with InferServer(context.infer, folder, models, context.environment) as server:
        for size in sizes:
            context.check(f"memory.booked.{size_name(size)}", lambda check, size=size: booked(context, check, server, size), 15)
    context.check("memory.free_after_stop", lambda check: freed(context, check, "stop"), 60)
    context.check("memory.free_after_kill", lambda check: freed(context, check, "kill"), 60)
    context.check("memory.survivors", lambda check: survivors(context, check), 20)
    residency(context)
    shortage(context)


def holder(context, folder, model_id, size, booked=None, **more):
    """A model of `size` bytes of weights, booked with room for what the driver takes unless `booked` is given."""
    command = context.engine("holder", "--socket", "{socket}", "--bytes", size, "--record", record_of(folder, model_id))
    return context.model(model_id, command, size if booked is None else booked, **more)


def record_of(folder, model_id):
    return os.path.join(folder, model_id.replace("/", "-") + ".record")


def first_card(server):
    return next(device for device in server.status()["devices"] if device["kind"] == "nvidia")


def booked(context, check, server, size):
    """Booked with the weights alone: infer must measure the rest that the engine uses."""
    name = size_name(size)
    before = context.card_used()
    loaded = server.load(f"checks/{name}")
    used = context.card_used() - before
    # A booking follows the measurement, which is made after the engine is ready.
    follows = until(lambda: first_card(server)["booked_bytes"] >= used - 64 * MIB, 10, 0.1)
    promised = first_card(server)["booked_bytes"]
    answered = server.embed(f"checks/{name}")
    unloaded = server.unload(f"checks/{name}")
    left = context.card_used() - before
    check.measured(
        f"{size_text(size)} of weights use {size_text(used)}, booked {size_text(promised)}; loaded in {loaded:.1f} s, "
        f"freed {unloaded:.2f} s after the request to unload",
        used=used,
        booked=promised,
        load_seconds=loaded,
        unload_seconds=unloaded,
        left_after_unload=left,
    )
    check.require(answered.status == 200, f"the engine answered {answered.error}")
    check.require(follows is not None, "a booking of at least what is used was expected within 10 s")
    check.require(promised <= used + max(OVERHEAD, used // 10), "a booking of at most a tenth or 1 GiB more was expected")
    check.require(left <= size // 10, f"{size_text(left)} were still in use when the server said that the memory is free")


def freed(context, check, way):
    """Ends engines one after the other and waits until the card shows the memory of each as free."""
    folder = context.folder(way)
    size = context.scale.weights[0]
    engines = [started(context, folder, at, size) for at in range(context.scale.repeats)]
    try:
        for process, record in engines:
            until(lambda process=process, record=record: read_record(record, "loaded") or process.poll() is not None, 120, 0.02)
            if process.poll() is not None:
                raise Failed(f"an engine ended with {process.poll()} before it was loaded")
            if not read_record(record, "loaded"):
                raise Skip("an engine was not loaded after 120 s")
        ended, shown = [], []
        for process, _ in engines:
            before = context.card_used()
            began = time.monotonic()
            process.terminate() if way == "stop" else process.kill()
            waited = threading.Thread(target=lambda: (process.wait(), ended.append(time.monotonic() - began)))
            waited.start()
            seconds = until(lambda: before - context.card_used() >= 0.9 * size, context.scale.free_seconds, 0.002)
            waited.join()
            shown.append(context.scale.free_seconds if seconds is None else seconds)
            if seconds is None:
                break
    finally:
        for process, _ in engines:
            process.kill()
            process.wait()
    text, numbers = distribution(shown)
    after_end = [max(0.0, seen - gone) for seen, gone in zip(shown, ended)]
    after_text, after_numbers = distribution(after_end)
    check.measured(
        f"free {text} after the {'SIGTERM' if way == 'stop' else 'SIGKILL'}; {after_text} after the end of the process",
        shown=numbers,
        after_end=after_numbers,
        all_seconds=[round(value, 4) for value in shown],
    )
    check.require(numbers["max"] <= MOST_SECONDS_UNTIL_FREE, f"at most {MOST_SECONDS_UNTIL_FREE:.0f} s were expected")


def started(context, folder, at, size):
    """An engine without infer that has begun to load."""
    socket, record = os.path.join(folder, f"{at}.sock"), os.path.join(folder, f"{at}.record")
    command = context.engine("holder", "--socket", socket, "--bytes", size, "--record", record)
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_parent
    ), record


def survivors(context, check):
    """The server is killed while an engine holds memory: nothing of it may be left after two seconds."""
    folder = context.folder("survivors")
    size = context.scale.weights[0]
    server = InferServer(context.infer, folder, [holder(context, folder, "checks/survivor", size)], context.environment)
    before = context.card_used()
    try:
        server.start()
        server.load("checks/survivor")
        mine = with_text(record_of(folder, "checks/survivor"))
        server.kill()
        gone = until(lambda: not any(is_alive(pid) for pid in mine), 2, 0.01)
        left = [pid for pid in mine if is_alive(pid)]
        free = until(lambda: context.card_used() - before < size // 10, 10, 0.01)
        wrapper = next((line for line in server.last_log().splitlines() if "wrapper" in line), "")
        check.measured(
            f"{len(left)} of {len(mine)} processes left"
            + (f", the last ended after {gone:.2f} s" if gone is not None else " after 2 s")
            + (f"; the memory was free after {free:.2f} s" if free is not None else "; the memory stayed in use for 10 s"),
            left=len(left),
            processes=len(mine),
            gone_seconds=gone,
            free_seconds=free,
            log=wrapper,
        )
        check.require(len(mine) > 0, "the engine's processes were not found")
        check.require(not left, "no process was expected to survive the server")
        check.require(free is not None, "the memory was expected to be free within 10 s")
    finally:
        server.stop()


def residency(context):
    """Three models of two fifths of the card each: two fit."""
    folder = context.folder("residency")
    size = int(0.38 * context.card_total()) // (256 * MIB) * (256 * MIB)
    names = ("checks/first", "checks/second", "checks/third")
    # The first load may take longer than a synchronous request waits by default, 30 s.
    models = [holder(context, folder, name, size, dispatch_wait_ms=100_000) for name in names]
    with InferServer(context.infer, folder, models, context.environment) as server:
        context.check("memory.two_engines", lambda check: two_engines(check, server, names), 25)
        context.check("memory.eviction", lambda check: eviction(check, server, names), 20)


def two_engines(check, server, names):
    answers = [server.embed(name) for name in names[:2]]
    resident = sorted(engine["model_id"] for engine in server.engines())
    check.measured(f"{' and '.join(resident)} loaded together", resident=resident)
    for name, answer in zip(names, answers):
        check.require(answer.status == 200, f"{name} answered {answer.error}")
    check.require(resident == sorted(names[:2]), "both were expected to be loaded")


def eviction(check, server, names):
    """The first model was used last, so the second, unused for longer, is to leave for the third."""
    first, second, third = names
    time.sleep(0.05)
    used = server.embed(first)
    began = time.monotonic()
    answer = server.embed(third)
    seconds = time.monotonic() - began
    resident = sorted(engine["model_id"] for engine in server.engines() if engine["state"] != "stopping")
    evicted = sorted({first, second} - set(resident))
    check.measured(
        f"{', '.join(evicted) or 'nothing'} evicted for {third}, which answered after {seconds:.1f} s",
        evicted=evicted,
        seconds=seconds,
    )
    check.require(used.status == 200, f"{first} answered {used.error}")
    check.require(answer.status == 200, f"{third} answered {answer.error}")
    check.require(evicted == [second], f"{second} was expected to leave: it was not used for longest")


def shortage(context):
    folder = context.folder("shortage")
    small, total = context.scale.weights[0], context.card_total()
    models = [
        holder(context, folder, "checks/small", small),
        # Booked far too small, so that it is started and finds no memory.
        holder(context, folder, "checks/too-large", int(1.1 * total), booked=small, dispatch_wait_ms=60_000),
    ]
    with InferServer(context.infer, folder, models, context.environment) as server:
        context.check("memory.out_of_memory_at_load", lambda check: at_load(check, server), 30)
        context.check("memory.out_of_memory_in_request", lambda check: in_request(check, server, total), 15)


def at_load(check, server):
    began = time.monotonic()
    answer = server.embed("checks/too-large")
    seconds = time.monotonic() - began
    after = server.embed("checks/small")
    check.measured(f"answered {answer.error} after {seconds:.1f} s", answer=answer.text[:2000], headers=answer.headers)
    check.require(answer.status == 503, "503 was expected")
    check.require("memory" in answer.text.lower(), "the missing memory was expected to be named in the message")
    check.require(after.status == 200, f"another model answered {after.error} afterwards")


def in_request(check, server, total):
    server.load("checks/small")
    pid = server.engines("checks/small")[0]["pid"]
    answer = server.embed("checks/small", f"allocate {int(1.1 * total)}")
    after = server.embed("checks/small")
    same = [engine["pid"] for engine in server.engines("checks/small")] == [pid]
    check.measured(
        f"answered {answer.error}; the next request {after.status}, by {'the same' if same else 'another'} process",
        answer=answer.text[:2000],
    )
    check.require(answer.status >= 500, "a status of 500 or more was expected")
    check.require(after.status == 200, f"the next request was expected to work and was answered {after.error}")
