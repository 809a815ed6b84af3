"""
Moves the GPU memory of a process to host memory and back with the driver's checkpoint calls (driver 570 or newer).
Source: cuda.h of CUDA 13.0, "CUDA Checkpointing".
"""

import ctypes
import threading
import time
from dataclasses import dataclass

ERRORS = {
    1: "CUDA_ERROR_INVALID_VALUE",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    100: "CUDA_ERROR_NO_DEVICE",
    401: "CUDA_ERROR_ILLEGAL_STATE",
    600: "CUDA_ERROR_NOT_READY",
    800: "CUDA_ERROR_NOT_PERMITTED",
    801: "CUDA_ERROR_NOT_SUPPORTED",
    999: "CUDA_ERROR_UNKNOWN",
}
STATES = ("running", "locked", "checkpointed", "failed")


class Refused(Exception):
    """The driver refused a call. `call` is its name, `error` the name of the CUDA error."""

    def __init__(self, call, error):
        super().__init__(f"{call} answered {error}")
        self.call = call
        self.error = error


class _LockArguments(ctypes.Structure):
    _fields_ = [
        ("timeout_ms", ctypes.c_uint),
        ("reserved0", ctypes.c_uint),
        ("reserved1", ctypes.c_uint64 * 7),
    ]


@dataclass
class Times:
    """Seconds of each call: lock and checkpoint park a process, restore and unlock bring it back."""

    lock: float = 0.0
    checkpoint: float = 0.0
    restore: float = 0.0
    unlock: float = 0.0


class Parking:
    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Refused("loading libcuda.so.1", str(error)) from error
        self._call("cuInit", ctypes.c_uint(0))

    def _call(self, name, *arguments, seconds=60):
        """Calls and returns the seconds that the call took. A call without an answer is left behind in its thread."""
        function = getattr(self.library, name, None)
        if function is None:
            raise Refused(name, "no such call: the driver is older than 570")
        answers = []

        def call():
            began = time.monotonic()
            code = function(*arguments)
            answers.append((code, time.monotonic() - began))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(seconds)
        if not answers:
            raise Refused(name, f"nothing within {seconds} s")
        code, took = answers[0]
        if code != 0:
            raise Refused(name, ERRORS.get(code, f"CUDA error {code}"))
        return took

    def state(self, pid):
        state = ctypes.c_int(-1)
        self._call("cuCheckpointProcessGetState", ctypes.c_int(pid), ctypes.byref(state))
        return STATES[state.value] if 0 <= state.value < len(STATES) else str(state.value)

    def park(self, pid, times, timeout_ms=10_000):
        """Afterwards the process holds no memory of the card; its calls of CUDA wait. Unlocks it when it cannot be parked."""
        arguments = _LockArguments(timeout_ms=timeout_ms)
        times.lock = self._call("cuCheckpointProcessLock", ctypes.c_int(pid), ctypes.byref(arguments))
        try:
            times.checkpoint = self._call("cuCheckpointProcessCheckpoint", ctypes.c_int(pid), None)
        except Refused as refused:
            try:
                self._call("cuCheckpointProcessUnlock", ctypes.c_int(pid), None, seconds=10)
            except Refused as unlock:
                raise Refused(refused.call, f"{refused.error}, and then {unlock}") from unlock
            raise

    def restore(self, pid, times):
        times.restore = self._call("cuCheckpointProcessRestore", ctypes.c_int(pid), None)
        times.unlock = self._call("cuCheckpointProcessUnlock", ctypes.c_int(pid), None)
