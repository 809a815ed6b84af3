"""
An engine with random weights. It holds them on the card and answers embeddings that depend on them, so that a lost or
damaged weight shows. Inputs of the form `allocate 123` allocate so many bytes for the request, `work 0.05` computes for
so many seconds.
"""

import argparse
import asyncio
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from accelerator import OutOfMemory, open_accelerator  # noqa: E402
from http_server import serve  # noqa: E402
from record import Record  # noqa: E402


class Holder:
    def __init__(self, options):
        self.options = options
        self.record = Record(options.record)
        self.pool = ThreadPoolExecutor(1)
        self.state = "loading"
        self.running = 0

    def load(self):
        began = time.monotonic()
        self.accelerator = open_accelerator(self.options.device)
        imported = time.monotonic()
        try:
            if self.options.file:
                self.weights = self.accelerator.load_weights(self.options.file)
            else:
                self.weights = self.accelerator.random_weights(self.options.bytes)
        except Exception as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        self.state = "ok"
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
        numbers = self.accelerator.fingerprint(self.weights)
        self.record.add("work", began=began, seconds=time.monotonic() - began)
        return numbers

    async def handle(self, request, answer):
        if request.path == "/health":
            status = 200 if self.state == "ok" else 503
            return answer.json({"status": self.state, "running": self.running}, status)
        if request.path != "/v1/embeddings" or request.method != "POST":
            return answer.error(f"There is no {request.method} {request.path}", 404)
        if self.state != "ok":
            return answer.error("The model is loading", 503)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket")
    parser.add_argument("--port", type=int)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu", "fake"])
    parser.add_argument("--bytes", type=int, default=2**20, help="bytes of random weights")
    parser.add_argument("--file", help="a safetensors file to load instead of random weights")
    parser.add_argument("--record", help="file for what the checks read: times of loads and requests")
    options = parser.parse_args()
    holder = Holder(options)

    holder.pool.submit(holder.load)
    serve(holder.handle, options.socket, options.port)


if __name__ == "__main__":
    main()
