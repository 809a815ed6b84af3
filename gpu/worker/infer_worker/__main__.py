"""Starts the worker: listens at once, loads the model, then answers requests until SIGTERM."""

import os
import signal
import sys
import threading
import traceback

from .load import load
from .options import read_options
from .server import Server


def main() -> None:
    options = read_options(sys.argv[1:])
    for name in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS'):
        os.environ.setdefault(name, str(options.threads))
    server = Server(options.key, options.folder)
    listener = server.listen(options.socket, options.port)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    # The default action ends the process also while a library computes and does not return to Python.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def on_progress(fraction: float) -> None:
        server.progress = max(server.progress, min(1.0, fraction))

    try:
        server.routes = load(options, on_progress)
    except Exception as error:  # noqa: BLE001: whatever a library raises is a model that does not load
        traceback.print_exc(file=sys.stderr)
        sys.exit(f'The model {options.model} could not be loaded: {error}')
    while True:
        signal.pause()


if __name__ == '__main__':
    main()
