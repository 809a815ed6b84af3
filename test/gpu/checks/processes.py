"""Processes of this machine, read from /proc."""

import ctypes
import os
import signal

_libc = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def end_with_parent():
    """As `preexec_fn`: the process gets SIGTERM when these checks end, also when they are killed at a limit of time."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))


def command_line(pid):
    return _of(pid, "cmdline")


def _of(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def with_text(text):
    """Process ids of all processes, except this one, whose command line contains `text`."""
    own = os.getpid()
    found = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own]
    return [pid for pid in found if text in command_line(pid)]


def kill_of_folder(folder):
    """
    Kills the processes, except this one, that have this folder in their command line or environment, as the engines of a
    server have that was started in it. Returns how many there were.
    """
    own = os.getpid()
    names = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != own]
    found = [int(name) for name in names if folder in _of(name, "cmdline") or folder in _of(name, "environ")]
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(found)


def innermost(pids):
    """Of processes that started each other those that started none of the others: an engine without its wrappers."""
    parents = {fields[1] for pid in pids if (fields := _stat(pid))}
    return [pid for pid in pids if str(pid) not in parents]


def _stat(pid):
    """The fields of a process from its state on; empty for a process that does not exist."""
    return _of(pid, "stat").rpartition(")")[2].split()


def is_alive(pid):
    """Whether the process exists and has not ended; a zombie counts as ended."""
    return (_stat(pid) or ["X"])[0] not in ("Z", "X")


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
