"""What infer adds to the work of an image model: the same loop as a separate process and as an engine behind infer."""

import json
import os
import subprocess
import time
from contextlib import ExitStack
from statistics import median

from context import GIB
from engines.record import read_record
from once import Once
from processes import end_with_parent
from report import Failed
from server import InferServer

MODEL = "check/generator"
STEPS = 30
SEED = 7
# Bar: how much longer a picture takes through infer, as a share of the bare loop's time.
OVERHEAD_BAR = 0.10


def run(context):
    with ExitStack() as stack:
        pair = Pair(context, stack)
        bare_seconds = 40 if pair.cuda else 3
        context.check("worker.bare", pair.check_bare, bare_seconds)
        seconds = 30 + 5 * pair.runs + pair.started.seconds(bare_seconds, 0)
        context.check("worker.overhead", lambda check: pair.compare(check, stack), seconds)


class Pair:
    """The bare loop and the engine, measured in alternation."""

    def __init__(self, context, stack):
        self.context = context
        self.started = Once("worker.bare", lambda: self.start_bare(stack))
        self.cuda = context.device == "cuda"
        self.runs = min(7, context.scale.repeats)
        self.side = 1024 if self.cuda else 128
        self.folder = context.folder("worker")

    def start_bare(self, stack):
        """Starts the bare loop and draws a first picture. Returns the blocks of a step."""
        program = self.context.engine(
            "diffusion", "--steps", STEPS, "--seed", SEED, "--side", self.side, "--seconds", 2 if self.cuda else 0.3,
            "--folder", self.folder,
        )  # fmt: skip
        self.bare = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent
        )
        stack.callback(self.stop_bare)
        blocks = self.read_bare()["blocks"]
        self.draw_bare()
        return blocks

    def check_bare(self, check):
        blocks = self.started()
        seconds = self.draw_bare()["seconds"]
        check.measured(f"{seconds:.2f} s a picture, {STEPS} steps of {blocks} blocks", seconds=seconds, blocks=blocks)

    def stop_bare(self):
        self.bare.stdin.close()
        self.bare.stdout.close()
        try:
            self.bare.wait(10)
        except subprocess.TimeoutExpired:
            self.bare.kill()
            self.bare.wait()

    def read_bare(self):
        line = self.bare.stdout.readline()
        if not line:
            raise Failed(f"the bare loop ended with status {self.bare.wait()}")
        return json.loads(line)

    def draw_bare(self):
        self.bare.stdin.write("draw\n")
        self.bare.stdin.flush()
        return self.read_bare()

    def compare(self, check, stack):
        blocks = self.started()
        record = os.path.join(self.folder, "generator.jsonl")
        command = self.context.engine("generator", "--port", "{port}", "--blocks", blocks, "--record", record)
        fields = {"tasks": ["slug/text-to-image"], "slug": "check/generator"}
        model = self.context.model(MODEL, command, 8 * GIB if self.cuda else GIB // 2, **fields)
        folder = self.context.folder("worker-server")
        server = stack.enter_context(InferServer(self.context.infer, folder, [model], self.context.environment))
        server.load(MODEL)
        self.draw_through(server)
        bare, through = [], []
        for _ in range(self.runs):
            bare.append(self.draw_bare())
            through.append(self.draw_through(server))
        made = read_record(record, "made")[1:]
        alone = median(run["seconds"] for run in bare)
        engine = median(run["seconds"] for run in made)
        whole = median(through)
        same = len({run["digest"] for run in [*bare, *made]}) == 1
        check.measured(
            f"{100 * (whole / alone - 1):+.1f} % (bare {alone:.3f} s, through infer {whole:.3f} s, of which in the engine "
            f"{engine:.3f} s; {self.runs} each); {'the same' if same else 'other'} pixels",
            overhead=whole / alone - 1,
            bare_seconds=alone,
            through_seconds=whole,
            engine_seconds=engine,
            same_pixels=same,
        )
        self.context.require_on_card(check, whole <= alone * (1 + OVERHEAD_BAR), f"expected at most +{OVERHEAD_BAR:.0%}")

    def draw_through(self, server):
        """Seconds from the request to its answer, which comes when the picture is stored."""
        body = {
            "prompt": "A cat on a mat",
            "seed": SEED,
            "num_inference_steps": STEPS,
            "width": self.side,
            "height": self.side,
            "sync_mode": True,
        }
        began = time.monotonic()
        reply = server.request("POST", "/slug/check/generator", body)
        seconds = time.monotonic() - began
        if reply.status != 200 or reply.json["status"].lower() != "completed":
            raise Failed(f"a picture was answered {reply.error}")
        return seconds
