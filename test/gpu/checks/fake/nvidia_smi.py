"""nvidia-smi for tests: answers from the fake library, in the forms that infer and the checks ask for."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from driver import MIB, Nvml  # noqa: E402

FOLDER = os.environ["INFER_FAKE_CARD"]


def faults():
    try:
        with open(os.path.join(FOLDER, "faults"), encoding="utf-8") as file:
            return file.read().split()
    except OSError:
        return []


def fields(card):
    more = 4096 if "smi-differs" in faults() else 0
    used = card.used_bytes // MIB + more
    total = card.total_bytes // MIB
    power = "[N/A]" if card.power_watts is None else f"{card.power_watts:.2f}"
    return {
        "index": card.index,
        "uuid": card.uuid,
        "name": "NVIDIA Other" if "smi-names" in faults() else card.name,
        "pci.bus_id": "00000000:01:00.0",
        "driver_version": "580.159.03",
        "compute_cap": "9.0",
        "memory.total": total,
        "memory.used": used,
        "memory.free": total - used,
        "utilization.gpu": card.utilization,
        "utilization.memory": 1,
        "temperature.gpu": card.temperature + (20 if "smi-hot" in faults() else 0),
        "power.draw": power,
        "power.limit": f"{card.power_limit_watts:.2f}",
        "mig.mode.current": "Disabled",
        "compute_mode": "Default",
        "persistence_mode": "Enabled",
        "clocks.sm": 1980,
    }


def main(arguments):
    cards = Nvml().cards()
    query = next((argument for argument in arguments if argument.startswith("--query-")), "")
    asked = query.partition("=")[2].split(",")
    if query.startswith("--query-gpu="):
        for card in cards:
            known = fields(card)
            unknown = [name for name in asked if name not in known]
            if unknown and "smi-lenient" not in faults():
                print(f'Field "{unknown[0]}" is not a valid field to query.\n')
                return 2
            print(", ".join(str(known.get(name, "")) for name in asked))
    elif query.startswith("--query-compute-apps="):
        for card in cards:
            for process in card.processes if "smi-hides" not in faults() else []:
                known = {
                    "gpu_uuid": card.uuid,
                    "pid": process.pid,
                    "process_name": "python3",
                    "used_gpu_memory": process.used_bytes // MIB,
                    "used_memory": process.used_bytes // MIB,
                }
                print(", ".join(str(known[name]) for name in asked))
    elif "-L" in arguments:
        for card in cards:
            print(f"GPU {card.index}: {card.name} (UUID: {card.uuid})")
    elif "-x" in arguments:
        print(f"<nvidia_smi_log><driver_version>580.159.03</driver_version><attached_gpus>{len(cards)}</attached_gpus></nvidia_smi_log>")
    else:
        print(f"NVIDIA-SMI 580.159.03, {len(cards)} card")
    return 0


sys.exit(main(sys.argv[1:]))
