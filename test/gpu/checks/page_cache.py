"""The pages of a file that the kernel keeps in memory."""

import ctypes
import mmap
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]


def drop_from_page_cache(path):
    """Asks the kernel to forget the file. A file system in memory keeps it, and some sandboxes ignore the request."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_share(path):
    """Share of the file that is in the page cache, 0 to 1. Sandboxes that do not know say 1. Raises OSError."""
    size = os.path.getsize(path)
    states = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    with open(path, "rb") as file:
        address = _libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "the file cannot be mapped")
    try:
        if _libc.mincore(address, size, states) != 0:
            raise OSError(ctypes.get_errno(), "mincore failed")
    finally:
        _libc.munmap(address, size)
    return sum(states.raw.count(bytes((value,))) for value in range(1, 256, 2)) / len(states)
