"""What every script of this folder shares: where the server is, and `run`, which prints one JSON line a check."""

import asyncio
import inspect
import json
import os
import sys
import time
import traceback

url = os.environ["INFER_URL"]
token = os.environ["INFER_TOKEN"]


def run() -> None:
    """Runs the functions of the script whose names begin with `check_`, in their order."""
    checks = {name: value for name, value in vars(sys.modules["__main__"]).items() if name.startswith("check_")}
    for name, check in checks.items():
        started = time.monotonic()
        error = None
        try:
            result = check()
            if inspect.iscoroutine(result):
                asyncio.run(result)
        except Exception:
            error = traceback.format_exc()
        milliseconds = round((time.monotonic() - started) * 1000)
        print(json.dumps({"check": name, "error": error, "ms": milliseconds}), flush=True)
