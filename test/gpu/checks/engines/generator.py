"""
An image engine by the protocol of core/tasks/protocols/generation-call.ts: `POST /v1/generate` for slug/text-to-image,
answered by lines of JSON with the progress of each step. It works on one picture at a time.
"""

import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from diffusion import draw, open_diffusion  # noqa: E402
from engine import engine_arguments, run_engine  # noqa: E402
from record import Record  # noqa: E402


class Cancelled(Exception):
    """The client has disconnected."""


class Generator:
    def __init__(self, options, record):
        self.options = options
        self.record = record
        self.pool = ThreadPoolExecutor(1)
        self.running = 0

    def load(self):
        self.diffusion = open_diffusion(self.options.device, self.options.blocks)
        # The first steps choose kernels.
        self.diffusion.pixels(2, 1, 64, 64)

    async def handle(self, request, answer):
        if request.path != "/v1/generate" or request.method != "POST":
            return answer.error(f"There is no {request.method} {request.path}", 404)
        call = request.json()
        if call["task"] != "slug/text-to-image":
            return answer.error(f"This engine does not do {call['task']}", 400)
        loop = asyncio.get_running_loop()
        answer.begin_stream("application/x-ndjson")

        def send(**message):
            if not answer.closed:
                answer.send(json.dumps(message).encode() + b"\n")

        def progress(fraction):
            if answer.closed:
                raise Cancelled
            loop.call_soon_threadsafe(lambda: send(type="progress", fraction=fraction))

        self.running += 1
        try:
            names = await loop.run_in_executor(self.pool, self.make, call["inputs"], call["folder"], progress)
        except Cancelled:
            return
        except (OSError, RuntimeError) as error:
            return send(type="failed", error={"message": str(error)[:4000], "invalid": False})
        finally:
            self.running -= 1
        files = [{"name": name, "kind": "image"} for name in names]
        send(type="completed", files=files, seed_used=call["inputs"]["seed"])

    def make(self, inputs, folder, progress):
        steps, images = inputs["num_inference_steps"], inputs["num_images"]
        names = []
        for at in range(images):
            names.append(f"image-{at}.png")
            made = draw(
                self.diffusion,
                os.path.join(folder, names[-1]),
                steps,
                inputs["seed"] + at,
                inputs["width"],
                inputs["height"],
                lambda step, at=at: progress((at + step / steps) / images),
            )
            self.record.add("made", **made)
        return names


def main():
    parser = engine_arguments(__doc__)
    parser.add_argument("--blocks", type=int, default=4, help="passes of a step over the latent")
    options = parser.parse_args()
    record = Record(options.record)
    generator = Generator(options, record)
    run_engine(options, record, generator.load, generator.handle, lambda: generator.running)


if __name__ == "__main__":
    main()
