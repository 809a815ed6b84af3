"""llama.cpp built for this card: token rates of the built-in engine against llama-server, and its memory against the booking."""

from llama.bench import Bench
from llama.layout import check_layout, memories, name_of
from llama.subject import Subject


def run(context):
    subject = Subject(context)
    on_card = context.device == "cuda"
    counts = (1, 4, 16, 64) if on_card else (1, 4)
    context.check("llama.build", subject.check_build)
    measure(context, Bench(context, subject, context.scale.llama, "f16", counts), "llama")
    large = ("8b", "q8_0") if on_card and context.scale.llama != "tiny" else (context.scale.llama, "q8_0")
    for memory in memories(context, large[0]):
        context.check(
            f"llama.layout.{name_of(memory)}",
            lambda check, memory=memory: check_layout(context, subject, check, *large, memory),
            30 if on_card else 1,
        )
    if on_card:
        measure(context, Bench(context, subject, *large, counts), f"llama.{large[0]}")


def measure(context, bench, prefix):
    estimate = 20 if context.device == "cuda" else 1
    try:
        context.check(f"{prefix}.load", bench.check_load, estimate)
        for count in bench.counts:
            context.check(f"{prefix}.streams.{count}", lambda check, count=count: bench.check_streams(check, count), estimate)
            context.check(f"{prefix}.ratio.{count}", lambda check, count=count: bench.check_ratio(check, count))
        context.check(f"{prefix}.prompt", bench.check_prompt, estimate)
    finally:
        bench.close()
