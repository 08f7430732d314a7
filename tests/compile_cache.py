"""A persistent compile cache for the tests, in the kernel cache: programs that were compiled, and texts that a
compiler has accepted.

Keys are hashes of all inputs, as those of kernels are (`jit.cache.key_of`): an entry can't be stale, and
the cache's size is bounded."""

import os
import shutil
import subprocess
from pathlib import Path

from pyarray.driver import cc
from pyarray.jit import cache
from pyarray.jit.compile import headers

MAX_DIGESTS = 50_000  # digests of texts in one entry: the latest


def compiler_identity(path):
    """The identity of a compiler's file. The programs it calls, and the system's headers, are installed with it."""
    status = os.stat(path)
    return f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"


def compile_cached(command, text, output):
    """Compiles C `text`, which includes headers of csrc and of the system alone, to the file `output`."""
    output = Path(output)
    compiler = compiler_identity(shutil.which(command[0]))
    key = cache.key_of("test program", compiler, cc.processor(), headers(), *command, text)
    binary = cache.find(key)
    if binary is not None:
        output.write_bytes(binary)
        return str(output)
    arguments = [*command, "-x", "c", "-", "-o", str(output), "-lm"]
    process = subprocess.run(arguments, input=text.encode(), capture_output=True)
    assert process.returncode == 0, process.stderr.decode()
    cache.publish(key, output.read_bytes(), {"kernel": "test program", "target": shutil.which(command[0])})
    return str(output)


def artifact_count(kernels):
    """The number of artifacts of these kernels, compiled or found in the cache, also those that an earlier run of
    the tests has compiled."""
    return sum(kernel.counts["compiles"] + kernel.counts["disk_hits"] for kernel in kernels)


class AcceptedTexts:
    """Digests of the texts that a compiler has accepted in earlier runs, with the same `inputs`."""

    def __init__(self, *inputs):
        self.key = cache.key_of("accepted texts", headers(), *inputs)
        self.digests = dict.fromkeys((cache.find(self.key) or b"").decode().split())

    def __contains__(self, digest):
        return digest in self.digests

    def add(self, digests):
        """Adds the digests of this run's texts; the oldest entries are dropped."""
        self.digests = dict.fromkeys([*digests, *self.digests][:MAX_DIGESTS])
        cache.publish(self.key, "\n".join(self.digests).encode(), {"kernel": "accepted texts", "target": ""})
