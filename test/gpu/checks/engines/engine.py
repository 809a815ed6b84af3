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
    Listens, records `listening` with the port, and answers requests with `handle(request, answer)` once `load()` has
    returned; until then with 503. `GET /health` says `running()`, a count of requests. The first request begins the load,
    in a thread, so that the engine answers while it lasts. A load that fails ends the process with the reason on stderr.
    """
    state = "new"

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
        nonlocal state
        if state == "new":
            state = "loading"
            threading.Thread(target=loading, daemon=True).start()
        if request.path == "/health":
            answer.json({"status": state, "running": running()}, 200 if state == "ok" else 503)
        elif state != "ok":
            answer.error("The model is loading", 503)
        else:
            await handle(request, answer)

    serve(answered, options.socket, options.port, lambda port: record.add("listening", port=port))
