"""The device of a torch model: threads, memory limit, number format, one computation at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .errors import Cancelled, EngineError
from .options import Options

POLL_SECONDS = 0.1


class OutOfMemory(EngineError):
    """Not the caller's mistake: other work may have taken the memory, so the call may be tried again."""

    def __init__(self, detail: str, advice: str = '') -> None:
        self.detail = detail.strip().splitlines()[0] if detail.strip() else ''
        super().__init__(500, f'Out of memory of the device. {advice}{self.detail}'.strip())


@dataclass
class TorchDevice:
    name: str
    dtype: Any
    """Number format of the weights; `auto` is that of the files."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def computing(self, cancelled: threading.Event) -> Iterator[None]:
        """Waits until no other request computes. Raises Cancelled if the caller disconnects while it waits."""
        import torch

        while not self._lock.acquire(timeout=POLL_SECONDS):
            if cancelled.is_set():
                raise Cancelled
        try:
            if cancelled.is_set():
                raise Cancelled
            with torch.inference_mode():
                yield
        except (torch.OutOfMemoryError, MemoryError) as error:
            if self.name == 'cuda':
                torch.cuda.empty_cache()
            raise OutOfMemory(str(error)) from None
        except RuntimeError as error:
            # The allocator of processors has no class of its own.
            if 'DefaultCPUAllocator' not in str(error):
                raise
            raise OutOfMemory(str(error)) from None
        finally:
            self._lock.release()


def open_device(options: Options) -> TorchDevice:
    """Applies threads and memory limit. On a processor weights are 32-bit floats unless the options say otherwise."""
    import torch

    torch.set_num_threads(options.threads)
    if options.device == 'cuda' and options.memory is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, options.memory / total))
    if options.dtype != 'auto':
        return TorchDevice(options.device, getattr(torch, options.dtype))
    return TorchDevice(options.device, torch.float32 if options.device == 'cpu' else 'auto')
