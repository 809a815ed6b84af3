"""
A load client for token streams: sends many chat requests that stream and measures when their tokens come. `load` runs it
in processes of 64 streams each, so that the client is not what is measured.
"""

import asyncio
import json
import math
import re
import subprocess
import sys
import time

STREAMS_A_PROCESS = 64
# An event with text: the first event of most servers has the role alone, which is no token.
TOKEN = re.compile(rb'"content": ?"[^"]')


def load(host, port, path, headers, body, streams, tokens, spread=0.0, seconds=120):
    """
    Runs `streams` requests of `tokens` tokens each at a time. They begin over `spread` seconds. Returns, in seconds:
    `ttft`, from a request to its first token, one number a stream; `gaps` between its tokens, 0 for those that came
    together; `seconds` from the first request to the last token; `tokens` that came; `errors`, as sentences.
    """
    count = math.ceil(streams / STREAMS_A_PROCESS)
    full = {**body, "stream": True, "max_tokens": tokens}
    task = {"host": host, "port": port, "path": path, "headers": headers, "body": full, "seconds": seconds}
    offsets = [spread * at / streams for at in range(streams)]
    children = []
    try:
        for at in range(count):
            child = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            children.append(child)
            child.stdin.write(json.dumps({**task, "offsets": offsets[at::count]}) + "\n")
            child.stdin.flush()
        for child in children:
            if child.stdout.readline() != "connected\n":
                raise RuntimeError(f"The load client could not connect to {host}:{port}")
        start = time.monotonic() + 0.05
        for child in children:
            child.stdin.write(f"{start}\n")
            child.stdin.flush()
        results = [json.loads(child.communicate(timeout=seconds + 30)[0]) for child in children]
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()
    joined = {name: [value for result in results for value in result[name]] for name in ("ttft", "gaps", "errors")}
    last = max(result["last"] for result in results)
    return {**joined, "seconds": max(0.0, last - start), "tokens": sum(result["tokens"] for result in results)}


class Stream(asyncio.Protocol):
    """One connection with one request. Notes the time and the number of tokens of each read."""

    def __init__(self):
        self.ended = asyncio.get_running_loop().create_future()
        self.head = b""
        self.rest = b""
        self.answered = False
        self.reads = []
        self.error = None

    def connection_made(self, transport):
        self.transport = transport

    def send(self, request):
        self.sent = time.monotonic()
        self.transport.write(request)

    def data_received(self, data):
        now = time.monotonic()
        if not self.answered:
            self.head += data
            head, end, data = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            if b" 200 " not in head[:16]:
                status = head[:40].decode("latin-1").splitlines()[0]
                return self.end(f"answered {status}: {data[:300].decode('utf-8', 'replace')}")
            self.answered = True
        data = self.rest + data
        count = after = 0
        for token in TOKEN.finditer(data):
            count += 1
            after = token.end()
        if count:
            self.reads.append((now, count))
        # The mark of a token may be divided between two reads.
        self.rest = data[max(after, len(data) - 16) :]
        if b"data: [DONE]" in data:
            self.end(None)
        elif b'data: {"error"' in data:
            self.end(data[data.index(b'data: {"error"') :][:300].decode("utf-8", "replace"))

    def connection_lost(self, error):
        self.end(f"the connection ended after {sum(count for _, count in self.reads)} tokens: {error}")

    def end(self, error):
        if not self.ended.done():
            self.error = error
            self.ended.set_result(None)
            self.transport.close()

    def gaps(self):
        times = [at for at, count in self.reads for _ in range(count)]
        return [round(after - before, 6) for before, after in zip(times, times[1:])]


async def run(task):
    loop = asyncio.get_running_loop()
    body = json.dumps(task["body"]).encode()
    headers = {"host": f"{task['host']}:{task['port']}", "content-type": "application/json", **task["headers"]}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"POST {task['path']} HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode() + body
    pairs = [loop.create_connection(Stream, task["host"], task["port"]) for _ in task["offsets"]]
    streams = [stream for _, stream in await asyncio.gather(*pairs)]
    print("connected", flush=True)
    start = float(sys.stdin.readline())
    for stream, offset in zip(streams, task["offsets"]):
        loop.call_at(start + offset, stream.send, request)
    await asyncio.wait([stream.ended for stream in streams], timeout=task["seconds"])
    for stream in streams:
        stream.end(f"no end within {task['seconds']} s")
    answered = [stream for stream in streams if stream.reads]
    return {
        "ttft": [round(stream.reads[0][0] - stream.sent, 6) for stream in answered],
        "gaps": [gap for stream in answered for gap in stream.gaps()],
        "tokens": sum(count for stream in answered for _, count in stream.reads),
        "last": max((stream.reads[-1][0] for stream in answered), default=0.0),
        "errors": [stream.error for stream in streams if stream.error],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(json.loads(sys.stdin.readline())))))
