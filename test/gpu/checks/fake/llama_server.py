"""llama-server for tests: streams answers to chats with the requested number of tokens."""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "engines"))

from http_server import serve  # noqa: E402

FOLDER = os.environ["INFER_FAKE_CARD"]


def faults():
    try:
        with open(os.path.join(FOLDER, "faults"), encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def chunk(**fields):
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "created": 1, "model": "fake", **fields}).encode() + b"\n\n"


async def handle(request, answer):
    if request.path == "/health":
        return answer.json({"status": "ok"})
    if request.path != "/v1/chat/completions":
        return answer.error(f"There is no {request.path}", 404)
    count = request.json()["max_tokens"]
    ends = count - 1 if "server-stops" in faults() else count
    answer.begin_stream()
    for _ in range(ends):
        answer.send(chunk(choices=[{"index": 0, "delta": {"content": " word"}, "finish_reason": None}]))
    answer.send(chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "length"}]))
    answer.send(chunk(choices=[], usage={"prompt_tokens": 9, "completion_tokens": ends, "total_tokens": ends + 9}))
    answer.send(b"data: [DONE]\n\n")


def main():
    if "server-dies" in faults():
        sys.exit("error: failed to load model")
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    options, _ = parser.parse_known_args()
    serve(handle, None, options.port)


if __name__ == "__main__":
    main()
