"""llama.cpp built for this card: token rates of the built-in engine against llama-server, and its memory against the booking."""

import math

from llama.bench import Bench
from llama.layout import check_layout, memories, name_of
from llama.subject import Subject


def run(context):
    subject = Subject(context)
    on_card = context.device == "cuda"
    counts = (1, 4, 16, 64) if on_card else (1, 4)
    # The build has a limit of its own.
    context.check("llama.build", subject.check_build, limit=math.inf)
    measure(context, Bench(context, subject, context.scale.llama, "f16", counts), "llama")
    large = ("8b", "q8_0") if on_card and context.scale.llama != "tiny" else (context.scale.llama, "q8_0")
    for memory in memories(context, large[0]):
        context.check(
            f"llama.layout.{name_of(memory)}",
            lambda check, memory=memory: check_layout(context, subject, check, *large, memory),
            20 if on_card else 1,
        )
    if on_card:
        measure(context, Bench(context, subject, *large, counts), f"llama.{large[0]}")


def measure(context, bench, prefix):
    def check(name, function, count=None):
        # The first check that needs the engines waits for the build too.
        limit = math.inf if bench.targets is None else None
        context.check(f"{prefix}.{name}", function, bench.needed(count), limit)

    try:
        check("load", bench.check_load)
        for count in bench.counts:
            check(f"streams.{count}", lambda check, count=count: bench.check_streams(check, count), count)
            check(f"ratio.{count}", lambda check, count=count: bench.check_ratio(check, count), count)
        check("prompt", bench.check_prompt)
    finally:
        bench.close()
