"""Processes of this machine, read from /proc."""

import os


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def with_text(text):
    """Process ids of all processes, except this one, whose command line contains `text`."""
    own = os.getpid()
    found = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own]
    return [pid for pid in found if text in command_line(pid)]


def is_alive(pid):
    """Whether the process exists and has not ended: one that nobody has waited for yet counts as ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def resident_bytes(pid):
    """Resident memory, 0 for a process that does not exist."""
    try:
        with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def available_bytes():
    """Memory of the machine that programs could still take."""
    with open("/proc/meminfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0
