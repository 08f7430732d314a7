"""What a run of the tests leaves for the next, in the kernel cache of the tests: programs that were
compiled, and which texts a compiler has passed.

Names are hashes of all that decides the answer, as those of kernels are (`jit.compile.key_of`): an entry
can't be stale, and the cache is kept below a size."""

import os
import shutil
import subprocess
from pathlib import Path

from pyarray.driver import cc
from pyarray.jit import cache
from pyarray.jit.compile import headers

MOST = 50_000  # digests of texts in one entry; those of the last runs


def identity(path):
    """Which file a compiler is. What it calls, and the system's headers, are installed with it."""
    status = os.stat(path)
    return f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"


def compiled(command, text, output):
    """Compiles C `text`, which includes headers of csrc and of the system alone, to the file `output`."""
    output = Path(output)
    compiler = identity(shutil.which(command[0]))
    key = cache.key_of("a program of the tests", compiler, cc.processor(), headers(), *command, text)
    binary = cache.find(key)
    if binary is not None:
        output.write_bytes(binary)
        return str(output)
    words = [*command, "-x", "c", "-", "-o", str(output), "-lm"]
    done = subprocess.run(words, input=text.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    cache.publish(key, output.read_bytes(), {"kernel": "a program of the tests", "target": shutil.which(command[0])})
    return str(output)


def artifacts(kernels):
    """How many artifacts these kernels have had, compiled or found in the cache: what was compiled by an earlier
    run of the tests counts."""
    return sum(kernel.counts["compiles"] + kernel.counts["disk_hits"] for kernel in kernels)


class Passed:
    """Digests of the texts that a compiler has passed before, where all that `facts` say was the same."""

    def __init__(self, *facts):
        self.key = cache.key_of("texts that passed", headers(), *facts)
        self.known = dict.fromkeys((cache.find(self.key) or b"").decode().split())

    def __contains__(self, digest):
        return digest in self.known

    def add(self, digests):
        """`digests`, of the texts of this run, come first; those that no run has any more fall out."""
        self.known = dict.fromkeys([*digests, *self.known][:MOST])
        cache.publish(self.key, "\n".join(self.known).encode(), {"kernel": "texts that passed", "target": ""})
