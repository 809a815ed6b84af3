"""The driver's own answer about the cards: nvidia-smi as a program and NVML through ctypes."""

import ctypes
import os
import subprocess
from dataclasses import dataclass, field

MIB = 2**20
NOT_AVAILABLE = 2**64 - 1


@dataclass
class Process:
    pid: int
    used_bytes: int | None


@dataclass
class Card:
    """One card as NVML describes it: bytes, degrees Celsius, watts, utilization in percent. None where it cannot say."""

    index: int
    name: str
    uuid: str
    total_bytes: int
    used_bytes: int
    temperature: int | None
    power_watts: float | None
    power_limit_watts: float | None
    utilization: int | None
    mig: bool
    processes: list = field(default_factory=list)


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Memory2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)] + [
        (name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")
    ]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class NvmlError(Exception):
    """NVML could not be loaded or refused a call."""


class Nvml:
    """NVML, opened for as long as the process lives. Source of the signatures: nvml.h of CUDA 13."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError as error:
            raise NvmlError(f"libnvidia-ml.so.1 cannot be loaded: {error}") from error
        self._call("nvmlInit_v2")
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self.handles = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            self.handles.append(handle)

    def _call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise NvmlError(f"{name} answered {code}")

    def _value(self, name, handle, value, *before):
        """The value that a call fills in, or None where the card does not report it."""
        try:
            self._call(name, handle, *before, ctypes.byref(value))
        except (NvmlError, AttributeError):
            return None
        return value.value if isinstance(value, ctypes.c_uint) else value

    def _text(self, name, handle):
        buffer = ctypes.create_string_buffer(96)
        self._call(name, handle, buffer, ctypes.c_uint(96))
        return buffer.value.decode()

    def driver_version(self):
        buffer = ctypes.create_string_buffer(80)
        self._call("nvmlSystemGetDriverVersion", buffer, ctypes.c_uint(80))
        return buffer.value.decode()

    def used_bytes(self, index):
        """The bytes as nvidia-smi counts them: without the driver's reserve, where the card reports it."""
        second = _Memory2(version=ctypes.sizeof(_Memory2) | 2 << 24)
        if self._value("nvmlDeviceGetMemoryInfo_v2", self.handles[index], second):
            return second.used
        first = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", self.handles[index], ctypes.byref(first))
        return first.used

    def processes(self, index):
        """Empty also where the driver does not list them, as in some sandboxes."""
        handle = self.handles[index]
        count = ctypes.c_uint(256)
        infos = (_Process * 256)()
        try:
            self._call("nvmlDeviceGetComputeRunningProcesses_v3", handle, ctypes.byref(count), infos)
        except (NvmlError, AttributeError):
            return []
        return [
            Process(infos[at].pid, None if infos[at].used == NOT_AVAILABLE else infos[at].used)
            for at in range(count.value)
        ]

    def card(self, index):
        handle = self.handles[index]
        memory = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        temperature = self._value("nvmlDeviceGetTemperature", handle, ctypes.c_uint(), ctypes.c_uint(0))
        power = self._value("nvmlDeviceGetPowerUsage", handle, ctypes.c_uint())
        limit = self._value("nvmlDeviceGetEnforcedPowerLimit", handle, ctypes.c_uint())
        utilization = self._value("nvmlDeviceGetUtilizationRates", handle, _Utilization())
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        try:
            self._call("nvmlDeviceGetMigMode", handle, ctypes.byref(current), ctypes.byref(pending))
        except (NvmlError, AttributeError):
            current.value = 0
        return Card(
            index=index,
            name=self._text("nvmlDeviceGetName", handle),
            uuid=self._text("nvmlDeviceGetUUID", handle),
            total_bytes=memory.total,
            used_bytes=self.used_bytes(index),
            temperature=temperature,
            power_watts=None if power is None else power / 1000,
            power_limit_watts=None if limit is None else limit / 1000,
            utilization=None if utilization is None else utilization.gpu,
            mig=current.value == 1,
            processes=self.processes(index),
        )

    def cards(self):
        return [self.card(index) for index in range(len(self.handles))]


def nvidia_smi(*arguments, timeout=20):
    """Exit status, standard output and standard error of one run. The status is None when it did not start or end."""
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, "", str(error)
    return done.returncode, done.stdout, done.stderr


def open_driver():
    """
    NVML and None when there is a card that can be used; otherwise None and the reason as one sentence.
    """
    try:
        nvml = Nvml()
    except NvmlError as error:
        status, _, _ = nvidia_smi("-L")
        if status is None:
            return None, "There is no NVIDIA card here: neither nvidia-smi nor its library (NVML) is installed."
        return None, f"There is no NVIDIA card that can be used here: {error}."
    if not nvml.handles:
        return None, "There is no NVIDIA card here: the driver is installed and finds none."
    return nvml, None
