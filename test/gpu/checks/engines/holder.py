"""
An engine with random weights. It holds them on the card and answers embeddings that depend on them, so that a lost or
damaged weight shows. Inputs of the form `allocate 123` allocate so many bytes for the request, `work 0.05` computes for
so many seconds, `wait /path` waits until there is such a file.
"""

import asyncio
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from accelerator import OutOfMemory, open_accelerator  # noqa: E402
from engine import engine_arguments, run_engine  # noqa: E402
from record import Record  # noqa: E402


class Holder:
    def __init__(self, options, record):
        self.options = options
        self.record = record
        self.pool = ThreadPoolExecutor(1)
        self.running = 0

    def load(self):
        began = time.monotonic()
        self.accelerator = open_accelerator(self.options.device)
        imported = time.monotonic()
        if self.options.file:
            self.weights = self.accelerator.load_weights(self.options.file)
        else:
            self.weights = self.accelerator.random_weights(self.options.bytes)
        self.record.add("loaded", import_seconds=imported - began, seconds=time.monotonic() - imported)

    def embed(self, text):
        verb, _, amount = text.partition(" ")
        began = time.monotonic()
        if verb == "allocate":
            try:
                self.accelerator.random_weights(int(amount))
            finally:
                self.accelerator.empty_cache()
        elif verb == "work":
            self.accelerator.work(float(amount))
        elif verb == "wait":
            while not os.path.exists(amount):
                time.sleep(0.005)
        numbers = self.accelerator.fingerprint(self.weights)
        self.record.add("work", began=began, seconds=time.monotonic() - began)
        return numbers

    async def handle(self, request, answer):
        if request.path != "/v1/embeddings" or request.method != "POST":
            return answer.error(f"There is no {request.method} {request.path}", 404)
        given = request.json()["input"]
        texts = [given] if isinstance(given, str) else given
        self.running += 1
        try:
            loop = asyncio.get_running_loop()
            vectors = [await loop.run_in_executor(self.pool, self.embed, text) for text in texts]
        except OutOfMemory as error:
            return answer.error(str(error))
        finally:
            self.running -= 1
        data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        answer.json({"object": "list", "model": "holder", "data": data, "usage": usage})


def main():
    parser = engine_arguments(__doc__)
    parser.add_argument("--bytes", type=int, default=2**20, help="bytes of random weights")
    parser.add_argument("--file", help="a safetensors file to load instead of random weights")
    options = parser.parse_args()
    record = Record(options.record)
    holder = Holder(options, record)
    run_engine(options, record, holder.load, holder.handle, lambda: holder.running)


if __name__ == "__main__":
    main()
