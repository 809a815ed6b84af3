"""Whether an engine that infer starts in a sandbox reaches the card, by the level of the sandbox."""

import os

from context import GIB
from report import Failed, Skip
from server import InferServer, ServerError

LEVELS = ("strict", "files", "none")


def fault_of(context, level):
    """Why an engine does not answer at this level of the sandbox, None where it does. Without a level infer chooses."""
    folder = context.folder("sandbox")
    record = os.path.join(folder, "record")
    command = context.engine("holder", "--socket", "{socket}", "--bytes", GIB // 4, "--record", record)
    model = context.model("checks/sandboxed", command, GIB // 4, **({"sandbox": level} if level else {}))
    try:
        with InferServer(context.infer, folder, [model], context.environment) as server:
            server.load("checks/sandboxed")
            answer = server.embed("checks/sandboxed")
            return None if answer.status == 200 else answer.error
    except ServerError as error:
        return str(error)


def check_level(context, check, level):
    """A level that the machine cannot enforce makes the model unavailable: that is no fault of infer."""
    fault = fault_of(context, level)
    if fault is None:
        return check.measured("an engine starts, and computes on the card" if context.device == "cuda" else "an engine starts")
    if "cannot be enforced on this machine" in fault:
        raise Skip(fault)
    raise Failed(fault)


def choose_level(context, check):
    """
    Where an engine does not work in the sandbox that infer chooses, the other checks use none, so that they measure all
    the same.
    """
    fault = fault_of(context, None)
    if fault is None:
        return check.measured("engines work in the sandbox that infer chooses")
    context.sandbox = "none"
    raise Failed(f"the other checks run engines without a sandbox, because in the one that infer chooses: {fault}")
