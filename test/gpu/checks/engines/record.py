"""The record that an engine writes for the checks: lines of JSON in a file, with times of CLOCK_MONOTONIC, which all processes share."""

import json
import os
import time


class Record:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8") if path else None

    def add(self, event, **values):
        if self.file:
            self.file.write(json.dumps({"event": event, "at": time.monotonic(), "pid": os.getpid(), **values}) + "\n")
            self.file.flush()


def read_record(path, event=None):
    """All entries, or those of one kind, in the order in which they were written."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file if line.endswith("\n")]
    return [entry for entry in entries if event in (None, entry["event"])]
