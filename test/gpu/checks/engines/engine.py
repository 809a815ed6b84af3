"""What all check engines share: their arguments, the load of the model and the answers while it lasts."""

import argparse
import os
import sys
import threading
import traceback

from accelerator import OutOfMemory
from http_server import serve


def engine_arguments(description):
    """A parser with the arguments of every engine."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--socket", help="the Unix socket to listen on")
    parser.add_argument("--port", type=int, help="the port of loopback to listen on; 0 takes a free one")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu", "fake"])
    parser.add_argument("--record", help="file for what the checks read: times of loads and requests")
    return parser


def run_engine(options, record, load, handle, running):
    """
    Runs `load()` in a thread and listens meanwhile. Records `listening` with the port. Answers requests with
    `handle(request, answer)` once `load()` has returned, until then with 503. `GET /health` says `running()`, a count of
    requests. A load that fails ends the process with the reason as the last line of stderr.
    """
    state = "loading"

    def loading():
        nonlocal state
        try:
            load()
        except OutOfMemory as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        state = "ok"

    async def answered(request, answer):
        if request.path == "/health":
            answer.json({"status": state, "running": running()}, 200 if state == "ok" else 503)
        elif state != "ok":
            answer.error("The model is loading", 503)
        else:
            await handle(request, answer)

    threading.Thread(target=loading, daemon=True).start()
    serve(answered, options.socket, options.port, lambda port: record.add("listening", port=port))
