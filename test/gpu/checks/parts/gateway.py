"""
What infer adds to requests: to token streams of an engine that decodes, beside the engine asked directly in the same run,
and between jobs of a queue.
"""

import os
from contextlib import ExitStack
from statistics import median

from context import GIB, percentile
from engines.record import read_record
from once import Once
from queue_idle import check_idle
from report import Failed
from server import InferServer
from streams import load

MODEL = "check/decoder"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Count to two hundred."}]}
# Bar of a gap's added p99 in milliseconds, and at how many streams it holds.
GAP_BAR_MS = 5
GAP_BAR_STREAMS = 64


def run(context):
    with ExitStack() as stack:
        bench = Bench(context, stack)
        context.check("gateway.load", bench.check_load, seconds=bench.load_seconds)
        for count in context.scale.streams:
            check_streams(context, bench, count)
        context.report.raw("gateway.decoder", "\n".join(map(str, read_record(bench.record))))
    check_idle(context)


class Bench:
    """The decoder behind infer, and the two ways to it: `load(True, …)` through infer, `load(False, …)` directly."""

    def __init__(self, context, stack):
        self.context = context
        self.started = Once("gateway.load", lambda: self.start(stack))
        self.full = context.device == "cuda"
        self.load_seconds = 60 if self.full else 5
        folder = context.folder("gateway")
        self.record = os.path.join(folder, "decoder.jsonl")
        slots = max(context.scale.streams)
        command = context.engine(
            "decoder", "--port", "{port}", "--slots", slots, "--step-ms", context.scale.step_ms, "--record", self.record
        )
        fields = {"tasks": ["std/chat-completion"], "concurrency": slots}
        model = context.model(MODEL, command, 16 * GIB if self.full else 1 * GIB, **fields)
        self.server = InferServer(context.infer, folder, [model], context.environment)

    def start(self, stack):
        """Starts server and engine and returns the seconds of the load."""
        stack.enter_context(self.server)
        seconds = self.server.load(MODEL)
        self.port = read_record(self.record, "listening")[-1]["port"]
        # The first requests open connections and compile code.
        for through in (False, True):
            self.load(through, min(4, max(self.context.scale.streams)), 5)
        return seconds

    def check_load(self, check):
        seconds = self.started()
        loaded = read_record(self.record, "loaded")[-1]
        parameters, error = loaded["parameters"], loaded["graph_error"]
        graphs = f"; without CUDA graphs: {error}" if error else ""
        check.measured(f"{parameters / 1e9:.2f} B parameters, {seconds:.1f} s{graphs}", ready_seconds=seconds, **loaded)

    def load(self, through, count, tokens, spread=0.0):
        if through:
            address = self.server.port, "/std/v1/chat/completions", {"authorization": f"Bearer {self.server.token}"}
        else:
            address = self.port, "/v1/chat/completions", {}
        result = load("127.0.0.1", *address, BODY, count, tokens, spread)
        if result["errors"] or result["tokens"] != count * tokens:
            way = "through infer" if through else "directly"
            error = result["errors"][:1] or "no error"
            raise Failed(f"{way} {result['tokens']} of {count * tokens} tokens came: {error}")
        return result


class Rounds:
    """Figures of streams directly and through infer, in alternation. Times in milliseconds."""

    def __init__(self, bench, count):
        bench.started()
        scale = bench.context.scale
        tokens = scale.tokens
        # Requests begin over some seconds: at once, the first token's time would be that of whole steps of the engine.
        spread = tokens * scale.step_ms / 1000 / 4
        self.direct, self.through, self.burst_direct, self.burst_through = [], [], [], []
        self.cpu_seconds = 0.0
        began = len(read_record(bench.record, "steps"))
        for number in range(scale.rounds):
            # Whoever is first in a round meets a machine that has rested.
            for through in (False, True) if number % 2 == 0 else (True, False):
                cpu = bench.server.cpu_seconds()
                result = figures(bench.load(through, count, tokens, spread))
                (self.through if through else self.direct).append(result)
                if through:
                    self.cpu_seconds += bench.server.cpu_seconds() - cpu
                burst = figures(bench.load(through, count, 5))
                (self.burst_through if through else self.burst_direct).append(burst)
        self.tokens = scale.rounds * count * tokens
        steps = read_record(bench.record, "steps")[began:]
        self.compute_ms = 1000 * sum(entry["compute"] for entry in steps) / sum(entry["steps"] for entry in steps)

    def added(self, name):
        """The median over the rounds of what infer adds, and both medians."""
        both = zip(self.direct, self.through)
        values = [through[name] - direct[name] for direct, through in both]
        return median(values), of(self.direct, name), of(self.through, name)


def figures(result):
    ttft = sorted(1000 * value for value in result["ttft"])
    gaps = sorted(1000 * value for value in result["gaps"])
    return {
        "ttft_p50": percentile(ttft, 0.5),
        "ttft_p99": percentile(ttft, 0.99),
        "gap_p50": percentile(gaps, 0.5),
        "gap_p99": percentile(gaps, 0.99),
        "gap_max": gaps[-1],
        "rate": result["tokens"] / result["seconds"],
    }


def of(rounds, name):
    return median(figure[name] for figure in rounds)


def check_streams(context, bench, count):
    measured = Once(f"the first measurement of {count} streams", lambda: Rounds(bench, count))

    def first_token(check):
        rounds = measured()
        context.report.raw(f"gateway.rounds.{count}", "\n".join(map(str, (*rounds.direct, *rounds.through))))
        added, direct, through = rounds.added("ttft_p50")
        bursts = of(rounds.burst_direct, "ttft_p50"), of(rounds.burst_through, "ttft_p50")
        check.measured(
            f"p50 {added:+.2f} ms (directly {direct:.1f}, through infer {through:.1f}); all at once directly "
            f"{bursts[0]:.1f}, through infer {bursts[1]:.1f}",
            added_ms=added,
            direct_ms=direct,
            through_ms=through,
            p99_direct_ms=of(rounds.direct, "ttft_p99"),
            p99_through_ms=of(rounds.through, "ttft_p99"),
            burst_direct_ms=bursts[0],
            burst_through_ms=bursts[1],
        )

    def gaps(check):
        rounds = measured()
        added, direct, through = rounds.added("gap_p99")
        check.measured(
            f"p99 {added:+.2f} ms (directly {direct:.1f}, through infer {through:.1f}; max {of(rounds.direct, 'gap_max'):.0f} "
            f"and {of(rounds.through, 'gap_max'):.0f}); a step computes {rounds.compute_ms:.1f} ms",
            added_ms=added,
            direct_ms=direct,
            through_ms=through,
            compute_ms=rounds.compute_ms,
            p50_direct_ms=of(rounds.direct, "gap_p50"),
            p50_through_ms=of(rounds.through, "gap_p50"),
        )
        if count == GAP_BAR_STREAMS:
            context.require_on_card(check, added <= GAP_BAR_MS, f"expected at most +{GAP_BAR_MS} ms")

    def throughput(check):
        rounds = measured()
        direct, through = of(rounds.direct, "rate"), of(rounds.through, "rate")
        check.measured(
            f"{through / direct:.3f} of the engine's own (directly {direct:.0f} tokens/s, through infer {through:.0f})",
            ratio=through / direct,
            direct=direct,
            through=through,
        )

    def cpu_per_token(check):
        rounds = measured()
        used = 1e6 * rounds.cpu_seconds / rounds.tokens
        check.measured(f"{used:.1f} µs of infer's processor time a token", microseconds=used)

    estimate = context.scale.rounds * (2.5 * context.scale.tokens * context.scale.step_ms / 1000 + 3)
    # The first of them that is run measures for all.
    checks = {"first_token": first_token, "gap_p99": gaps, "throughput": throughput, "cpu_per_token": cpu_per_token}
    for name, function in checks.items():
        seconds = measured.seconds(estimate + bench.started.seconds(bench.load_seconds, 0))
        context.check(f"gateway.{name}.{count}", function, seconds)
