"""
What the check engines compute on: a CUDA card or the processor through torch, or a fake card for tests, which is a
folder: each allocation is a file below `held` that its process keeps locked, so that the kernel frees it with the
process, and that test/gpu/checks/fake reads as the driver would.
"""

import fcntl
import hashlib
import os
import time
import uuid
import weakref

GIB = 2**30


class OutOfMemory(Exception):
    """The card has too little free memory. The text is the driver's."""


class TorchAccelerator:
    def __init__(self, device):
        import torch

        self.torch = torch
        self.device = torch.device(device)

    def random_weights(self, total_bytes):
        """Random bf16 weights in pieces of 256 MiB, as the tensors of a model are."""
        torch = self.torch
        torch.manual_seed(7)
        weights = []
        try:
            while total_bytes > 0:
                piece = min(total_bytes, 256 * 2**20)
                weights.append(torch.empty(piece // 2, dtype=torch.bfloat16, device=self.device).normal_())
                total_bytes -= piece
            self.synchronize()
        except torch.cuda.OutOfMemoryError as error:
            # The exception refers to this frame: what was allocated would stay as long as the exception.
            weights.clear()
            raise OutOfMemory(str(error)) from None
        return weights

    def load_weights(self, path):
        """The tensors of a safetensors file, on the card."""
        from safetensors import safe_open

        with safe_open(path, framework="pt", device=str(self.device)) as file:
            weights = [file.get_tensor(name) for name in file.keys()]
        self.synchronize()
        return weights

    def fingerprint(self, weights):
        """Eight numbers that depend on samples of all weights, added up on the card. Equal weights give equal numbers."""
        samples = [piece[:: max(1, piece.numel() // 4096)][:4096].float() for piece in weights]
        sums = self.torch.stack([value for sample in samples for value in (sample.sum(), (sample * sample).sum())])
        digest = hashlib.sha256(sums.cpu().numpy().tobytes()).digest()
        # An embedding may not be all zeros, hence the first two.
        return [2.0, -1.5] + [float(byte) for byte in digest[:6]]

    def work(self, seconds):
        """Multiplies matrices for about as long."""
        size = 4096 if self.device.type == "cuda" else 256
        if not hasattr(self, "matrix"):
            self.matrix = self.torch.randn(size, size, dtype=self.torch.bfloat16, device=self.device)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(8):
                self.torch.mm(self.matrix, self.matrix)
            self.synchronize()

    def synchronize(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def empty_cache(self):
        if self.device.type == "cuda":
            self.torch.cuda.empty_cache()


class FakeAccelerator:
    """Holds memory of the first card of the folder that INFER_FAKE_CARD names."""

    def __init__(self, folder):
        self.folder = folder
        # Closing any file that is locked by the process loses the lock, so a process must not open its own again.
        self.own = {}

    def random_weights(self, total_bytes):
        total, used, faults = self._card()
        if used + total_bytes > total and "endless" not in faults:
            free = (total - used) / GIB
            raise OutOfMemory(
                f"CUDA out of memory. Tried to allocate {total_bytes / GIB:.2f} GiB. GPU 0 has a total capacity of "
                f"{total / GIB:.2f} GiB of which {free:.2f} GiB is free."
            )
        path = os.path.join(self.folder, "held", uuid.uuid4().hex)
        held = total_bytes + (total_bytes // 2 if "holds-more" in faults else 0)
        # Locked before it has its name: the driver takes a file without a lock for the memory of a dead process.
        file = open(f"{path}.new", "w+", encoding="utf-8")
        fcntl.lockf(file, fcntl.LOCK_EX)
        file.write(f"0 {held}\n")
        file.flush()
        os.rename(f"{path}.new", path)
        self.own[os.path.basename(path)] = (weakref.ref(file), held)
        return [file]

    def _card(self):
        """Bytes in all and in use, and the faults that a test has set."""
        with open(os.path.join(self.folder, "card"), encoding="utf-8") as file:
            total = int(file.read().split()[0])
        used = sum(held for file, held in self.own.values() if file() is not None)
        for name in os.listdir(os.path.join(self.folder, "held")):
            if name in self.own or "." in name:
                continue
            try:
                with open(os.path.join(self.folder, "held", name), "r+", encoding="utf-8") as file:
                    try:
                        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except OSError:
                        used += int(file.read().split()[1])
            except (OSError, IndexError):
                continue
        return total, used, self.faults()

    def faults(self):
        try:
            with open(os.path.join(self.folder, "faults"), encoding="utf-8") as file:
                return file.read().split()
        except OSError:
            return []

    def load_weights(self, path):
        with open(path, "rb") as file:
            total = 0
            while piece := file.read(2**20):
                total += len(piece)
        return self.random_weights(total)

    def fingerprint(self, weights):
        restored = any(os.path.exists(os.path.join(self.folder, "held", f"{name}.restored")) for name in self.own)
        changed = restored and "forgets" in self.faults()
        return [2.0, -1.5, float(len(weights)), 3.0, 4.0, 5.0, 6.0, 8.0 if changed else 7.0]

    def work(self, seconds):
        time.sleep(seconds)

    def synchronize(self):
        pass

    def empty_cache(self):
        pass


def open_accelerator(device):
    """`cuda`, `cpu`, or `fake` with the folder in INFER_FAKE_CARD."""
    return FakeAccelerator(os.environ["INFER_FAKE_CARD"]) if device == "fake" else TorchAccelerator(device)
