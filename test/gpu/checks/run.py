"""
Checks infer on a machine with an NVIDIA card, in parts that run alone or together. Prints one line per check and writes
all figures and raw outputs into one JSON file. Needs Python 3.11 or newer; the engines on a card need torch.
Exit status: 0 when no check failed or there is no card, 1 when one failed, 64 for wrong arguments.
"""

import argparse
import datetime
import hashlib
import importlib
import json
import lzma
import os
import platform
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from context import FULL, QUICK, Context  # noqa: E402
from driver import open_driver  # noqa: E402
from report import Budget, Report, Skip  # noqa: E402
from sandbox import choose_level  # noqa: E402

# In this order: what is quick and tells most comes first. Shares of the budget where several parts run.
PARTS = {"discovery": 2, "gateway": 3, "memory": 4, "swap": 5, "worker": 1, "llama": 5}


MOST_UNPACKING_SECONDS = 20


def arguments():
    parser = argparse.ArgumentParser(prog="gpu-checks", description=__doc__)
    parser.add_argument("--part", default=",".join(PARTS), help=f"parts to run, separated by commas: {', '.join(PARTS)}")
    parser.add_argument("--check", default="", help="only checks whose names begin so, separated by commas")
    parser.add_argument("--budget", type=float, default=1500, help="seconds for all parts together (1500)")
    parser.add_argument("--infer", help="the executable to check; the one of the bundle or build/infer otherwise")
    parser.add_argument("--output", default="gpu-checks.json", help="the JSON file (gpu-checks.json)")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repetitions, as the tests run it")
    parser.add_argument("--device", choices=["cuda", "cpu", "fake"], default="cuda", help=argparse.SUPPRESS)
    parser.add_argument("--sources", help=argparse.SUPPRESS)
    parser.add_argument("--keep", action="store_true", help="keep the working folders")
    options = parser.parse_args()
    options.parts = [part for part in options.part.split(",") if part]
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.exit(64, f"There is no part '{unknown[0]}'. Parts: {', '.join(PARTS)}.\n")
    return options


def manifest():
    """The facts that the bundle records about itself; empty in a checkout."""
    try:
        with open(os.path.join(HERE, "..", "manifest.json"), encoding="utf-8") as file:
            return json.load(file)
    except OSError:
        return {}


def executable(options):
    """
    The executable under test: unpacked beside its archive the first time. Returns its path and the seconds of that, None
    where nothing was unpacked.
    """
    if options.infer:
        return os.path.abspath(options.infer), None
    packed = os.path.join(HERE, "..", "infer.xz")
    if not os.path.exists(packed):
        return os.path.abspath(os.path.join(HERE, "..", "..", "..", "build", "infer")), None
    path = os.path.join(HERE, "..", "infer")
    if os.path.exists(path):
        return os.path.abspath(path), None
    began = time.monotonic()
    with lzma.open(packed) as source, open(f"{path}.new", "wb") as target:
        # In pieces of 64 KiB: Linux maps the pages of a file in units of the writes that made it.
        shutil.copyfileobj(source, target, 64 * 2**10)
    os.chmod(f"{path}.new", 0o755)
    os.rename(f"{path}.new", path)
    return os.path.abspath(path), time.monotonic() - began


def llama_sources():
    """The archive in the bundle; in a checkout that of the last `npm run gpu:bundle`."""
    in_bundle = os.path.join(HERE, "..", "llama.cpp.tar.xz")
    return in_bundle if manifest() else os.path.join(HERE, "..", "..", "..", "build", "gpu-checks", "llama.cpp.tar.xz")


def bundle_files(check, about):
    """Every file as it was when the bundle was made: one that was cut short on its way explains much."""
    changed = []
    for path, known in about["files"].items():
        try:
            with open(os.path.join(HERE, "..", path), "rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != known["sha256"]:
                    changed.append(path)
        except OSError:
            changed.append(path)
    check.measured(f"{len(about['files'])} files, {len(changed)} changed or missing", changed=changed)
    check.require(not changed, f"expected as it was made: {', '.join(changed[:5])}")


def bundle_unpacked(check, seconds):
    if seconds is None:
        raise Skip("the executable was unpacked before, or named with --infer")
    check.measured(f"{seconds:.1f} s", seconds=seconds)
    check.require(seconds <= MOST_UNPACKING_SECONDS, f"at most {MOST_UNPACKING_SECONDS} s were expected")


def header(options, nvml, about):
    card = nvml.card(0)
    return {
        "started_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "card": card.name,
        "cards": len(nvml.handles),
        "card_bytes": card.total_bytes,
        # More than a few MiB: something else is on the card, and what is measured is not infer's alone.
        "card_used_bytes": card.used_bytes,
        "driver": nvml.driver_version(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "commit": about.get("commit"),
        "version": about.get("version"),
        "parts": options.parts,
        "budget_seconds": options.budget,
        "device": options.device,
        "quick": options.quick,
    }


def end(*_):
    """On SIGTERM: servers and engines are stopped on the way out, and the file is written."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, end)
    nvml, reason = open_driver()
    if nvml is None:
        print(f"{reason} Nothing was checked.")
        return 0
    infer, unpacked = executable(options)
    if not os.access(infer, os.X_OK):
        print(f"{infer} is missing or cannot be run. In a checkout: npm run pack.", file=sys.stderr)
        return 64
    about = manifest()
    report = Report(os.path.abspath(options.output), header(options, nvml, about), filter(None, options.check.split(",")))
    context = Context(
        report=report,
        nvml=nvml,
        infer=infer,
        device=options.device,
        scale=QUICK if options.quick else FULL,
        sources=os.path.abspath(options.sources or llama_sources()),
        keep=options.keep,
    )
    budget = Budget(options.budget)
    try:
        if about:
            report.run("bundle.files", lambda check: bundle_files(check, about), budget)
            report.run("bundle.unpack", lambda check: bundle_unpacked(check, unpacked), budget)
        report.run("engines.sandbox", lambda check: choose_level(context, check), budget, 60)
        waiting = list(options.parts)
        while waiting:
            # What a part leaves of its share goes to those after it.
            share = PARTS[waiting[0]] / sum(PARTS[part] for part in waiting)
            context.budget = budget.part(budget.left() * share)
            part = waiting.pop(0)
            try:
                importlib.import_module(f"parts.{part}").run(context)
            except Exception as error:
                report.part_failed(part, error)
    finally:
        context.close()
        report.write()
    counts = ", ".join(f"{report.count(outcome)} {outcome}" for outcome in ("ok", "fail", "skipped"))
    print(f"{counts}; figures in {options.output}")
    return 1 if report.count("fail") else 0


if __name__ == "__main__":
    sys.exit(main())
