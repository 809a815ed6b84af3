"""How long an engine with one slot is idle between two requests of a queue that is never empty."""

import http.client
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median

from context import GIB, distribution
from engines.record import read_record
from once import Once
from report import Failed
from server import InferServer

MODEL = "check/holder"
# Bar of the median in milliseconds.
IDLE_BAR_MS = 5
CALLERS = 16


def check_idle(context):
    """Checks the idle time between durable jobs and between synchronous calls."""
    seconds = 5 + context.scale.jobs * (context.scale.work_seconds + 0.05)
    with ExitStack() as stack:
        queue = Queue(context, stack)
        context.check("gateway.queue", queue.check_queue, 20 if context.device == "cuda" else 5)
        for name, run in (("jobs", queue.run_jobs), ("calls", queue.run_calls)):
            needed = seconds + queue.started.seconds(15, 0)
            context.check(f"gateway.idle_between_{name}", lambda check, run=run: queue.check_idle(check, run), needed)


class Queue:
    """An engine of one slot behind infer. Its record has the begin and end of each request."""

    def __init__(self, context, stack):
        self.context = context
        self.started = Once("gateway.queue", lambda: self.start(stack))
        self.count = context.scale.jobs
        folder = context.folder("queue")
        self.record = os.path.join(folder, "holder.jsonl")
        command = context.engine("holder", "--port", "{port}", "--record", self.record)
        model = context.model(MODEL, command, 2 * GIB if context.device == "cuda" else GIB // 4)
        self.server = InferServer(context.infer, folder, [model], context.environment)
        self.text = f"work {context.scale.work_seconds}"

    def start(self, stack):
        """Starts server and engine and returns the seconds of the load."""
        stack.enter_context(self.server)
        seconds = self.server.load(MODEL)
        # The first request is slower on every way.
        self.server.embed(MODEL, self.text)
        return seconds

    def check_queue(self, check):
        """What the idle time is compared with."""
        seconds = self.started()
        direct_ms = 1000 * median(self.idle(self.run_directly))
        sync_ms = 1000 * median(synced_writes(self.server.folder))
        check.measured(
            f"loaded in {seconds:.1f} s; p50 {direct_ms:.2g} ms between requests of one client of the engine; "
            f"a synced write to the disk of the jobs takes {sync_ms:.2g} ms",
            seconds=seconds,
            direct_ms=direct_ms,
            sync_ms=sync_ms,
        )

    def check_idle(self, check, run):
        self.started()
        text, numbers = distribution(self.idle(run), "ms", 1000)
        check.measured(f"{text}, p99 {numbers['p99']:.3g} ms", **numbers)
        self.context.require_on_card(check, numbers["p50"] <= IDLE_BAR_MS, f"expected a p50 of at most {IDLE_BAR_MS} ms")

    def idle(self, run):
        """Seconds between the requests of `run`, which returns the time from which on its queue was full."""
        before = len(read_record(self.record, "work"))
        since = run()
        work = [entry for entry in read_record(self.record, "work")[before:] if entry["began"] >= since]
        work.sort(key=lambda entry: entry["began"])
        idle = [after["began"] - entry["began"] - entry["seconds"] for entry, after in zip(work, work[1:])]
        if any(seconds < 0 for seconds in idle):
            raise Failed("the engine of one slot worked on two requests at once")
        if len(work) < self.count:
            raise Failed(f"only {len(work)} of {self.count} requests began once all were in the queue")
        return idle

    def run_directly(self):
        """One client that sends a request as soon as it has the answer to the one before."""
        port = read_record(self.record, "listening")[-1]["port"]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        since = time.monotonic()
        for _ in range(self.count):
            connection.request("POST", "/v1/embeddings", json.dumps({"model": MODEL, "input": self.text}))
            connection.getresponse().read()
        connection.close()
        return since

    def run_jobs(self):
        """Durable jobs, all submitted before the first of them begins."""
        gate = os.path.join(self.context.folder("gate"), "open")
        try:
            ids = [self.submit(text) for text in (f"wait {gate}", *[self.text] * self.count)]
            submitted = time.monotonic()
        finally:
            open(gate, "w", encoding="utf-8").close()
        for job_id in reversed(ids):
            job = self.server.get(f"/api/jobs/{job_id}?wait=100")
            if job["status"] != "completed":
                raise Failed(f"a job is {job['status']}: {job['error']}")
        return submitted

    def submit(self, text):
        body = {"task": "std/embeddings", "model_id": MODEL, "inputs": {"input": text}}
        return self.server.post("/api/jobs", body)["id"]

    def run_calls(self):
        """Synchronous calls of several callers at once: all but one of them wait."""
        since = time.monotonic()
        with ThreadPoolExecutor(CALLERS) as pool:
            for reply in pool.map(lambda _: self.server.embed(MODEL, self.text), range(self.count)):
                if reply.status != 200:
                    raise Failed(f"a call was answered {reply.error}")
        return since


def synced_writes(folder):
    """Seconds of each of 50 writes of 4 KiB that reach the disk, which a durable job needs at its start and at its end."""
    with open(os.path.join(folder, "synced"), "wb") as file:
        for _ in range(50):
            began = time.monotonic()
            file.write(bytes(4096))
            file.flush()
            os.fdatasync(file.fileno())
            yield time.monotonic() - began
