"""Many kernels as one text, so that to compile them all takes seconds: each in its own namespace, after the
headers that they share."""

import re
from dataclasses import dataclass
from pathlib import Path

from pyarray.driver.cc import include_dirs
from pyarray.lang.dialect import DIALECTS

PRELUDE = DIALECTS["cuda"].prelude
SHARED = ("pa_base.h", "pa_check.h", "pa_shape.h", "pa_int.h", "pa_real.h", "pa_half.h", "pa_float8.h", "pa_complex.h",
          "pa_atomic.h", "pa_cpp.h")  # fmt: skip
# A kernel that is a mere inline function is parsed and checked like any other, and no code is made for it.
PARSED = """\
#undef __global__
#define __global__ __device__ inline
#undef __launch_bounds__
#undef __cluster_dims__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
"""
_INCLUDE = re.compile(r"^\s*#\s*include [<\"](pa_\w+\.h)[>\"]\n", re.MULTILINE)
_C = re.compile(r'extern\s+"C"\s*{')
_DEFINE = re.compile(r"^\s*#\s*define (\w+)", re.MULTILINE)
# What differs from target to target: the functions of our headers and of the compiler, by their arguments.
_CALL = re.compile(r"\b(?:pa_|__)\w+\([^()\n]*\)")
_OWN = re.compile(r"\b(?:v_|kernel_|func_|view_|n\d+_|data_|wide_)\w+|\b\d+")


@dataclass(frozen=True)
class Emitted:
    """The text of a kernel, its file's name, and the test that first had it."""

    name: str
    test: str
    text: str


def recorded(folder):
    """What kernel_recorder.py wrote."""
    found = []
    for path in sorted(Path(folder).glob("*.cu")):
        head, _, text = path.read_text().partition("\n")
        found.append(Emitted(path.stem, head.removeprefix("// "), text))
    return found


def first_callers(kernels):
    """Names of the kernels that call something in a way that none before them does."""
    seen, found = set(), set()
    for kernel in kernels:
        calls = {_OWN.sub("", call) for call in set(_CALL.findall(kernel.text))}
        if not calls <= seen:
            seen |= calls
            found.add(kernel.name)
    return found


def share(kernels, part, parts, callers):
    """What one of so many targets reads of the kernels: a part, by their digests, so that a kernel stays with
    its target when there are others; and all that are in `callers`."""
    return [k for k in kernels if int(k.name, 16) % parts == part or k.name in callers]


def joined(kernels, parsed):
    """One text of all; `parsed` if no code need be made."""
    head = "".join(f"#include <{name}>\n" for name in SHARED) + PRELUDE
    return head + (PARSED if parsed else "") + "".join(map(_apart, kernels))


def _apart(kernel):
    text = _INCLUDE.sub(lambda m: "\n" if m[1] in SHARED else m[0], kernel.text)
    text = _C.sub("namespace c {", text.replace(PRELUDE, "")).replace('extern "C" ', "")
    undone = "".join(f"#undef {name}\n" for name in sorted(_macros(text)))
    return f'namespace k{kernel.name} {{\n#line 1 "{kernel.name}.cu"\n{text}\n}}\n{undone}'


def _macros(text):
    """Those that a text defines, or the headers that it includes for itself: guards too."""
    names = set(_DEFINE.findall(text))
    for header in set(_INCLUDE.findall(text)) - set(SHARED):
        names |= _macros(next(Path(folder) / header for folder in include_dirs()).read_text())
    return names


def culprit(kernels, refused):
    """(a kernel that `refused` has words about, the words), or None if it has none about all of them."""
    if not refused(kernels):
        return None
    while len(kernels) > 1:
        half = kernels[: len(kernels) // 2]
        kernels = half if refused(half) else kernels[len(half) :]
    return kernels[0], refused(kernels)
