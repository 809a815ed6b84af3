"""llama-server started directly, with the arguments that infer gives it, to compare with."""

import http.client
import os
import signal
import socket
import subprocess

from context import until
from processes import end_with_parent


class BareServer:
    """
    Runs `command`, which infer started llama-server with, as `program` on a free port of loopback. Stop it with `stop`.
    """

    def __init__(self, program, command, folder, environment):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = os.path.join(folder, "llama-server.log")
        argv = [program, *(argument.replace("{port}", str(self.port)) for argument in command[1:])]
        quiet = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**environment, **quiet}, start_new_session=True, preexec_fn=end_with_parent,
            )  # fmt: skip

    def wait(self, seconds=120):
        """Seconds until it is ready. Raises RuntimeError with its last words when it is not."""
        took = until(lambda: self._ready() or self.process.poll() is not None, seconds, 0.05)
        if took is None or self.process.poll() is not None:
            raise RuntimeError(f"llama-server is not ready: {self.last_log()}")
        return took

    def _ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def last_log(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return " ".join(file.read()[-400:].split())

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
