"""What the checks found: one line per check on standard output, figures and raw outputs in one JSON file."""

import json
import os
import signal
import sys
import time
import traceback
from contextlib import contextmanager

MAX_FILE_BYTES = 4 * 2**20
MAX_RAW_BYTES = 128 * 2**10
MAX_ALL_RAW_BYTES = 2 * 2**20
MAX_VALUES_BYTES = 64 * 2**10

# Seconds that a check may take at least, and how long it may go on after the end of the budget.
LEAST_LIMIT = 120
LATEST_AFTER_BUDGET = 45


class Skip(Exception):
    """Ends a check as skipped. Its text is the reason."""


class Failed(Exception):
    """Ends a check as failed. Its text says why."""


class Check:
    """One check while it runs. `figure` is the text of its line, `values` are its numbers."""

    def __init__(self, name):
        self.name = name
        self.figure = ""
        self.values = {}

    def measured(self, figure, **values):
        """Sets the figure of the line and adds numbers to the JSON file."""
        self.figure = figure
        self.values.update(values)

    def require(self, condition, otherwise):
        """Fails the check unless the condition holds. `otherwise` says what was expected; it follows the figure."""
        if not condition:
            raise Failed(f"{self.figure}; {otherwise}" if self.figure else otherwise)


class Budget:
    """Seconds that may be used. `part` makes a smaller one that ends no later than its parent."""

    def __init__(self, seconds, clock=time.monotonic):
        self.clock = clock
        self.end = clock() + seconds

    def left(self):
        return max(0.0, self.end - self.clock())

    def part(self, seconds):
        return Budget(min(seconds, self.left()), self.clock)


@contextmanager
def time_limit(seconds):
    """Raises Failed in the block after so many seconds. For the main thread; calls of C libraries are not interrupted."""

    def too_long(*_):
        raise Failed(f"it had not ended after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Report:
    """Collects checks. The file is replaced after each one, so that an interrupted run keeps the results so far."""

    def __init__(self, path, header, only=()):
        """`only` holds beginnings of names; checks with other names are not run. Empty: all are."""
        self.only = tuple(only)
        self.path = path
        self.header = header
        self.checks = []
        self.raw_texts = {}
        self.terminal = sys.stdout.isatty()

    def run(self, name, function, budget, seconds=1.0, limit=None):
        """
        Runs `function(check)` and prints the line of the check: `ok`; `skipped` after Skip, or when fewer than `seconds`
        of the budget are left; `fail` after Failed or any other exception, and after `limit` seconds (four times `seconds`,
        120 at least) or 45 s after the end of the budget. Returns whether it was run and was ok.
        """
        if self.only and not name.startswith(self.only):
            return False
        check = Check(name)
        if self.terminal:
            print(f"{name} …", end="\r", flush=True)
        began = time.monotonic()
        outcome = "ok"
        try:
            if budget.left() < seconds:
                raise Skip(f"it needs {seconds:.0f} s and {budget.left():.0f} s of the budget are left")
            with time_limit(min(limit or max(LEAST_LIMIT, 4 * seconds), budget.left() + LATEST_AFTER_BUDGET)):
                function(check)
        except Skip as skip:
            outcome, check.figure = "skipped", str(skip)
        except Failed as failed:
            outcome, check.figure = "fail", str(failed)
        except Exception as error:
            outcome, check.figure = "fail", f"{type(error).__name__}: {error}"
            self.raw(f"{name}.traceback", traceback.format_exc())
        except BaseException as error:
            check.figure = f"the run was ended meanwhile ({type(error).__name__})"
            self._finish(check, "fail", time.monotonic() - began)
            raise
        self._finish(check, outcome, time.monotonic() - began)
        return outcome == "ok"

    def part_failed(self, name, error):
        """Adds a failed check with the name of a part, for what went wrong outside its checks."""
        check = Check(name)
        check.figure = f"{type(error).__name__}: {error}"
        self.raw(f"{name}.traceback", "".join(traceback.format_exception(error)))
        self._finish(check, "fail", 0.0)

    def _finish(self, check, outcome, seconds):
        figure = " ".join(check.figure.split())[:300]
        values = check.values
        # What JSON cannot express becomes text: one odd value must not end the run.
        text = json.dumps(values, default=str)
        values = json.loads(text)
        if len(text) > MAX_VALUES_BYTES:
            values = {"left_out": f"more than {MAX_VALUES_BYTES} bytes of values"}
        self.checks.append(
            {"name": check.name, "outcome": outcome, "figure": figure, "seconds": round(seconds, 3), "values": values}
        )
        line = f"{check.name}: {outcome}" + (f", {figure}" if figure else "")
        print(("\x1b[2K" if self.terminal else "") + line, flush=True)
        self.write()

    def raw(self, name, text):
        """Keeps an output as it came: its first 128 KiB, and 2 MiB of all outputs together."""
        kept = text.encode("utf-8", "replace")[:MAX_RAW_BYTES]
        room = MAX_ALL_RAW_BYTES - sum(len(known.encode()) for known in self.raw_texts.values())
        self.raw_texts[name] = kept[: max(0, room)].decode("utf-8", "ignore")

    def write(self):
        text = json.dumps({**self.header, "checks": self.checks, "raw": self.raw_texts}, indent=1)
        # JSON writes a control character as six; an output full of them is not worth a file that is too large.
        while len(text) > MAX_FILE_BYTES and self.raw_texts:
            self.raw_texts.pop(max(self.raw_texts, key=lambda name: len(json.dumps(self.raw_texts[name]))))
            text = json.dumps({**self.header, "checks": self.checks, "raw": self.raw_texts}, indent=1)
        with open(f"{self.path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{self.path}.new", self.path)

    def count(self, outcome):
        return sum(check["outcome"] == outcome for check in self.checks)
