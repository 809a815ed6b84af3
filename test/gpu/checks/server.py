"""A running `infer serve` of the executable under test, and its API."""

import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time

from processes import end_with_parent, kill_of_folder


class ServerError(Exception):
    """The server did not start, or answered otherwise than expected."""


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.text = body.decode("utf-8", "replace")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def error(self):
        """Code and message of an error, for figures."""
        try:
            error = self.json["error"]
            return f"{self.status} {error.get('code')}: {error.get('message')}"
        except (ValueError, KeyError, TypeError):
            return f"{self.status} {self.text[:200]}"


class InferServer:
    """
    Starts the server on a free port of loopback with `models` and stops it on exit. Use it as a context manager.
    `environment` replaces the environment.
    """

    def __init__(self, infer, folder, models, environment, more=None):
        self.infer = infer
        self.folder = folder
        # A sandbox hides the home from engines, so their records do not lie in it.
        places = {"INFER_DATA_DIR": os.path.join(folder, "data"), "HOME": os.path.join(folder, "home")}
        self.environment = {**environment, **places}
        for place in places.values():
            os.makedirs(place, mode=0o700, exist_ok=True)
        # Engines end with a killed server: the checks look at the memory that they leave.
        limits = {"min_free_disk": 0, "ballast": 0, "adopt_grace": 0}
        config = {"listen": "127.0.0.1:0", "models": models, "limits": limits, **(more or {})}
        self.config = os.path.join(folder, "infer.yaml")
        # JSON is YAML.
        with open(self.config, "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.log = os.path.join(folder, "server.log")
        self.process = None
        self.port = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, seconds=60):
        log = open(self.log, "ab")
        self.process = subprocess.Popen(
            [self.infer, "serve", "--config", self.config, "--log-level", "info"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=self.environment,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        log.close()
        found = threading.Event()
        said = []

        def read():
            for line in self.process.stdout:
                said.append(line.decode("utf-8", "replace"))
                address = re.search(r"https?://[\w.\[\]:]*?:(\d+)", said[-1])
                if address and not found.is_set():
                    self.port = int(address[1])
                    found.set()
            found.set()

        threading.Thread(target=read, daemon=True).start()
        if not found.wait(seconds) or self.port is None:
            self.stop()
            raise ServerError(f"infer serve did not start: {''.join(said)[-300:]} {self.last_log()}")
        with open(os.path.join(self.environment["INFER_DATA_DIR"], "root-token"), encoding="utf-8") as file:
            self.token = file.read().strip()

    def last_log(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return file.read()[-600:]
        except OSError:
            return ""

    def stop(self, seconds=20):
        """Afterwards no process of it is left: an engine that hangs in the driver would falsify what is measured next."""
        if self.process is None:
            return
        try:
            if self.process.poll() is None:
                self.process.terminate()
                self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        finally:
            kill_of_folder(self.folder)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def request(self, method, path, body=None, seconds=120):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return Reply(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def get(self, path):
        reply = self.request("GET", path)
        if reply.status != 200:
            raise ServerError(f"GET {path} answered {reply.error}")
        return reply.json

    def post(self, path, body=None, seconds=120):
        reply = self.request("POST", path, body, seconds)
        if reply.status >= 300:
            raise ServerError(f"POST {path} answered {reply.error}")
        return reply.json

    def status(self):
        return self.get("/api/system/status")

    def engines(self, model_id=None):
        return [engine for engine in self.status()["engines"] if model_id in (None, engine["model_id"])]

    def load(self, model_id, seconds=300):
        """Seconds that the load took."""
        began = time.monotonic()
        while True:
            state = self.post(f"/api/models/{model_id}/load?wait=60", {})
            took = time.monotonic() - began
            if state["status"] == "warm":
                return took
            if state["status"] != "loading" or took > seconds:
                raise ServerError(f"{model_id} is {state['status']} after {took:.1f} s of loading: {state.get('reason')}")

    def unload(self, model_id):
        """Seconds until the server says that its memory is free."""
        began = time.monotonic()
        self.post(f"/api/models/{model_id}/unload?wait=60", {})
        return time.monotonic() - began

    def embed(self, model_id, text="checksum", seconds=120):
        body = {"model": model_id, "input": text}
        return self.request("POST", "/std/v1/embeddings", body, seconds)

    def cpu_seconds(self):
        """Processor time of the server's process so far, without its engines."""
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
