"""Compares the cards and the machine as infer reports them with the driver's values."""

import json
import os
import subprocess
import sys

from context import GIB, MIB, size_text, until
from driver import nvidia_smi
from report import Skip
from sandbox import LEVELS, check_level
from server import InferServer

RAW_COMMANDS = {
    "nvidia-smi": [],
    "nvidia-smi -L": ["-L"],
    "nvidia-smi -q -x": ["-q", "-x"],
    "nvidia-smi topo -m": ["topo", "-m"],
    "nvidia-smi mig -lgi": ["mig", "-lgi"],
    "nvidia-smi --query-gpu": [
        "--query-gpu=index,uuid,name,pci.bus_id,driver_version,compute_cap,memory.total,memory.used,memory.free,"
        "utilization.gpu,utilization.memory,temperature.gpu,power.draw,power.limit,mig.mode.current,compute_mode,"
        "persistence_mode,clocks.sm",
        "--format=csv,noheader,nounits",
    ],
    "nvidia-smi --query-compute-apps": [
        "--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory",
        "--format=csv,noheader,nounits",
    ],
    "nvidia-smi unknown field": ["--query-gpu=index,no_such_field", "--format=csv,noheader"],
}
RAW_FILES = (
    "/proc/driver/nvidia/version",
    "/proc/self/status",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/meminfo",
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/user/max_user_namespaces",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/sys/module/nvidia/version",
)

# How engines could be started, from the tightest on; each must still reach the card.
WRAPPERS = {
    "pdeathsig": "setpriv --pdeathsig KILL --no-new-privs --",
    "pid_namespace": "setpriv --pdeathsig KILL -- unshare --pid --fork --kill-child=SIGKILL --mount-proc --",
    "pid_namespace_without_proc": "setpriv --pdeathsig KILL -- unshare --pid --fork --kill-child=SIGKILL --",
    "user_namespace": "unshare --user --map-current-user --pid --fork --kill-child=SIGKILL --mount-proc --",
    "mount_namespace": "unshare --mount --propagation private --",
    "network_namespace": "unshare --net --",
    "bubblewrap": "bwrap --die-with-parent --unshare-pid --dev-bind / / --proc /proc --",
    "bubblewrap_files": "bwrap --die-with-parent --unshare-pid --ro-bind / / --dev-bind /dev /dev --proc /proc --tmpfs /tmp --",
    "bubblewrap_network": "bwrap --die-with-parent --unshare-pid --unshare-net --ro-bind / / --dev-bind /dev /dev --proc /proc --",
}


# Writes to the card's memory and reads it back, without torch, whose start would take longer than all the rest.
PROGRAM = """
import ctypes
library = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(library, name)(*arguments)
    if code != 0:
        raise SystemExit(f"{name} answered {code}")
device, context, memory, found = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64(), (ctypes.c_uint * 4)()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(16))
call("cuMemsetD32_v2", memory, ctypes.c_uint(7), ctypes.c_size_t(4))
call("cuMemcpyDtoH_v2", ctypes.byref(found), memory, ctypes.c_size_t(16))
print(sum(found))
"""


def run(context):
    context.check("discovery.raw_outputs", lambda check: raw_outputs(context, check), 5)
    context.check("discovery.doctor", lambda check: doctor(context, check), 10)
    folder = context.folder("discovery")
    record = os.path.join(folder, "record")
    model = context.model(
        "checks/holder",
        context.engine("holder", "--socket", "{socket}", "--bytes", GIB, "--record", record),
        GIB,
    )
    with InferServer(context.infer, folder, [model], context.environment) as server:
        context.check("discovery.cards", lambda check: cards(context, check, server), 5)
        context.check("discovery.memory", lambda check: memory(context, check, server), 20)
        context.check("discovery.readings", lambda check: readings(context, check, server), 5)
        context.check("discovery.processes", lambda check: processes(context, check, server), 5)
        context.report.raw("GET /api/system/status", json.dumps(server.status(), indent=1))
    for level in LEVELS:
        context.check(f"discovery.sandbox.{level}", lambda check, level=level: check_level(context, check, level), 20)
    for name, command in WRAPPERS.items():
        context.check(f"discovery.wrapper.{name}", lambda check, command=command: wrapper(context, check, command), 5)


def raw_outputs(context, check):
    statuses = {}
    for name, command in RAW_COMMANDS.items():
        status, out, err = nvidia_smi(*command)
        statuses[name] = status
        context.report.raw(name, f"exit {status}\n{out}{err}")
    for path in RAW_FILES:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                context.report.raw(path, file.read())
        except OSError as error:
            context.report.raw(path, str(error))
    check.measured(f"{len(RAW_COMMANDS)} commands and {len(RAW_FILES)} files kept", statuses=statuses)
    check.require(statuses["nvidia-smi --query-gpu"] == 0, "nvidia-smi --query-gpu was expected to end with 0")
    check.require(statuses["nvidia-smi unknown field"] == 2, "an unknown field was expected to end nvidia-smi with 2")


def doctor(context, check):
    environment = {**context.environment, "INFER_DATA_DIR": context.folder("doctor"), "HOME": context.root}
    done = subprocess.run(
        [context.infer, "doctor", "--json"], capture_output=True, text=True, timeout=100, env=environment
    )
    context.report.raw("infer doctor --json", f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    findings = json.loads(done.stdout)["findings"]
    not_fine = [finding["name"] for finding in findings if finding["state"] != "fine"]
    gpus = next((finding["detail"] for finding in findings if finding["name"] == "GPUs"), "no finding named GPUs")
    check.measured(f"{gpus}; not fine: {', '.join(not_fine) or 'nothing'}", exit=done.returncode, not_fine=not_fine)
    check.require(context.nvml.card(0).name in gpus, "the card's name was expected in its findings")


def cards(context, check, server):
    ours = [device for device in server.status()["devices"] if device["kind"] == "nvidia"]
    theirs = context.nvml.cards()
    slices = any(card.mig for card in theirs)
    check.measured(
        f"{len(ours)} of {len(theirs)}: {', '.join(device['name'] for device in ours)}",
        ours=ours,
        theirs=[vars(card) | {"processes": len(card.processes)} for card in theirs],
    )
    if slices:
        raise Skip(f"{check.figure}; a card is in MIG mode, so its slices are listed: see the raw outputs")
    check.require(len(ours) == len(theirs), f"NVML counts {len(theirs)} cards")
    for device, card in zip(ours, theirs):
        check.require(device["name"] == card.name, f"NVML says {card.name}")
        apart = abs(device["total_bytes"] - card.total_bytes)
        check.require(apart <= MIB, f"NVML says {card.total_bytes} bytes in all, infer {device['total_bytes']}")


def memory(context, check, server):
    """infer looks at the cards every few seconds, so its figure is waited for."""
    before = context.card_used()
    server.load("checks/holder")
    measured = context.card_used() - before
    delay = until(lambda: abs(first_card(server)["used_bytes"] - context.card_used()) <= 64 * MIB, 8, 0.1)
    ours, theirs = first_card(server)["used_bytes"], context.card_used()
    shown = "never" if delay is None else f"after {delay:.1f} s"
    check.measured(
        f"{size_text(ours)} as infer reports ({shown}), {size_text(theirs)} by NVML; an engine of 1 GiB added {size_text(measured)}",
        ours=ours,
        theirs=theirs,
        added=measured,
        shown_after_seconds=delay,
    )
    check.require(delay is not None, "at most 64 MiB apart were expected within 8 s")
    check.require(measured >= GIB, "at least 1 GiB was expected to be added")


def first_card(server):
    """The first card as infer reports it."""
    return next(device for device in server.status()["devices"] if device["kind"] == "nvidia")


def readings(context, check, server):
    """
    Temperature, power and utilization change by the second, and infer looks at them every few seconds: the figures of both
    are compared with some room, for as long as infer takes to look again.
    """

    def read():
        device, card = first_card(server), context.nvml.card(0)
        return device, card, {
            "temperature_celsius": (device.get("temperature_celsius"), card.temperature, 3),
            "power_watts": (device.get("power_watts"), card.power_watts, 60),
            "power_limit_watts": (device.get("power_limit_watts"), card.power_limit_watts, 1),
        }  # fmt: skip

    def near(pair):
        ours, theirs, room = pair
        return ours == theirs or (None not in (ours, theirs) and abs(ours - theirs) <= room)

    until(lambda: all(map(near, read()[2].values())), 8, 0.5)
    device, card, pairs = read()
    figure = ", ".join(f"{name} {ours} and {theirs}" for name, (ours, theirs, _) in pairs.items())
    check.measured(f"as infer and as NVML say: {figure}; utilization {device.get('utilization')} and {card.utilization} %")
    for name, (ours, theirs, room) in pairs.items():
        check.require((ours is None) == (theirs is None), f"one of them knows no {name}")
        check.require(ours is None or abs(ours - theirs) <= room, f"{name} was expected to be at most {room} apart")


def processes(context, check, server):
    server.load("checks/holder")
    engine = server.engines("checks/holder")[0]
    # infer answers with the list before while nvidia-smi takes longer than a second.
    until(lambda: pids(first_card(server).get("processes")) == pids(map(vars, context.nvml.processes(0))), 8, 0.5)
    theirs = context.nvml.processes(0)
    ours = first_card(server).get("processes")
    check.measured(
        f"{len(ours or [])} as infer reports, {len(theirs)} by NVML; the engine's process is {engine['pid']}",
        ours=ours,
        theirs=[vars(process) for process in theirs],
        engine_pid=engine["pid"],
    )
    if not theirs:
        raise Skip(f"{check.figure}; the driver lists no processes here, as in most containers")
    check.require(ours is not None, "infer reports no processes")
    check.require(pids(ours) == pids(map(vars, theirs)), "the same processes were expected")


def pids(processes):
    return {process["pid"] for process in processes or []}


def wrapper(context, check, command):
    """Whether a program starts through the wrapper and still reaches the card."""
    program = command.split()[0]
    found = any(os.access(os.path.join(path, program), os.X_OK) for path in os.environ.get("PATH", "").split(":"))
    if not found:
        raise Skip(f"{program} is not installed")
    test = PROGRAM if context.device == "cuda" else "print(28)"
    done = subprocess.run([*command.split(), sys.executable, "-c", test], capture_output=True, text=True, timeout=60)
    if done.returncode == 0 and done.stdout.strip() == "28":
        return check.measured("starts, and reaches the card's memory" if context.device == "cuda" else "starts")
    said = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
    raise Skip(f"does not work here: {said} (exit {done.returncode})")
