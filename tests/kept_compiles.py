"""What the C compiler made of a text is kept in `build/`, as that of the emulated GPU is: half of a run of
the tests is compiling the same texts as the run before.

Found by all that decides the binary: the compiler's file, the processor, the whole command, the text, and the
headers of ours that it includes, at any depth. To the tests it looks like a compile. What these don't tell is
compiled.
"""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from pyarray.driver import cc

KEPT = Path(__file__).resolve().parent.parent / "build" / "compiled"
DAYS = 7  # unused for so long, an entry goes
# Options and variables by which a compiler reads files that nobody looks at here.
FILES = ("-I", "-i", "-B", "-L", "-specs", "@")
VARIABLES = (
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
)
_INCLUDED = re.compile(r"^\s*#\s*include\s*([<\"])([^>\"]+)[>\"]", re.MULTILINE)


class Compilers:
    """Stands for the module subprocess in driver/cc.py."""

    def __getattr__(self, name):
        return getattr(subprocess, name)

    def run(self, command, **options):
        key = _key(command, options["input"].decode())
        if key is None:
            return subprocess.run(command, **options)
        kept, output = KEPT / key, Path(command[command.index("-o") + 1])
        try:
            output.write_bytes(kept.read_bytes())
            os.utime(kept)
            return subprocess.CompletedProcess(command, 0, b"", b"")
        except FileNotFoundError:
            result = subprocess.run(command, **options)
        if not (result.returncode or result.stderr) and output.exists():
            _keep(kept, output.read_bytes())
        return result


def compiled(command, text, output):
    """Compiles C `text` to the file `output`."""
    words = [*command, "-x", "c", "-", "-o", str(output), "-lm"]
    done = Compilers().run(words, input=text.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return str(output)


def keep_compiles():
    """From now on, for kernels of this process."""
    KEPT.mkdir(parents=True, exist_ok=True)
    old = time.time() - DAYS * 24 * 3600
    for path in KEPT.iterdir():
        try:
            if path.stat().st_mtime < old:
                path.unlink()
        except FileNotFoundError:  # another process was first
            pass
    cc.subprocess = Compilers()


def _keep(path, binary):
    handle, fresh = tempfile.mkstemp(dir=KEPT)
    with os.fdopen(handle, "wb") as file:
        file.write(binary)
    os.rename(fresh, path)


def _key(command, text):
    """None for what isn't kept: a compiler that is a script, and texts and options that name other files."""
    compiler = _compiler(shutil.which(command[0]))
    own = tuple(f"-I{folder}" for folder in cc.include_dirs())
    others = [word for word in command[1:] if word.startswith(FILES) and word not in own]
    names = [name for mark, name in _INCLUDED.findall(text) if mark == '"' or name.startswith("pa_")]
    if compiler is None or others or any(map(os.environ.get, VARIABLES)) or not _headers().keys() >= {*names}:
        return None
    output = command.index("-o") + 1
    said = [
        compiler,
        cc.processor(),
        *command[:output],
        *command[output + 1 :],
        text,
        *sorted(_all_headers(names)),
    ]
    return hashlib.sha256("\0".join(said).encode()).hexdigest()


@functools.cache
def _compiler(path):
    """Which file it is. What it calls, and the system's headers, are installed with it."""
    if path is None:
        return None
    path = os.path.realpath(path)
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return None
    status = os.stat(path)
    return f"{path} {status.st_size} {status.st_mtime_ns}"


@functools.cache
def _headers():
    return {path.name: path.read_text() for path in cc.headers()}


def _all_headers(names):
    """The text of these headers of ours and of those that they include."""
    known, found, left = _headers(), set(), list(names)
    while left:
        name = left.pop()
        if name in known and name not in found:
            found.add(name)
            left += [name for _, name in _INCLUDED.findall(known[name])]
    return map(known.get, found)
