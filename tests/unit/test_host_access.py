"""One module accesses the memory of arrays from the host (`memory/host_access.py`), and in C one function; both tell a
capture in progress."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import pyarray as pa
from pyarray.memory import host_access as access
from pyarray.memory.host_access import host_access

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pyarray"
MODULE = PACKAGE / "memory" / "host_access.py"
CAPTURES = {PACKAGE / "jit" / name for name in ("graph.py", "replay.py")}  # they look at what was told

READS = {"from_address", "string_at", "memmove", "memset", "set_host_access", "host_access_occurred", "load_element"}
COPIES = {"copy_in", "copy_out", "copy_peer", "copy_disjoint", "read_async"}  # of a driver
STATE = {"occurred", "guards"}
GENERATED = re.compile(rf"\.({'|'.join(sorted(READS | COPIES))})\(")  # in texts that are compiled


def docstrings(tree):
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    firsts = [n.body[0] for n in ast.walk(tree) if isinstance(n, owners) and n.body]
    return {id(n.value) for n in firsts if isinstance(n, ast.Expr)}


def accesses(text, is_capture=False):
    """(line, what) of host access to memory in a text of Python."""
    tree = ast.parse(text)
    described = docstrings(tree)
    for node in ast.walk(tree):
        found = ""
        if isinstance(node, ast.Attribute):
            owner, name = ast.unparse(node.value), node.attr
            if name in READS | COPIES or name == "__array_interface__" or (owner, name) == ("ffi", "buffer"):
                found = name
            elif name == "fill" and owner.endswith("driver"):
                found = "driver.fill"
            elif owner.endswith("host_access") and name in STATE and not is_capture:
                found = f"host_access.{name}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").endswith("_core"):
            found = ", ".join(sorted({alias.name for alias in node.names} & READS))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            found = "__array_interface__" if "__array_interface__" in ast.unparse(node) else ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            found = "a text with an access" if GENERATED.search(node.value) else ""
        if found:
            yield node.lineno, found


def test_no_other_module_accesses_the_memory_of_arrays():
    """Drivers do what that module asks them for."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {what}; use a function of memory/host_access.py"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != MODULE and PACKAGE / "driver" not in path.parents
        for line, what in accesses(path.read_text(), path in CAPTURES)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "c_float.from_address(a._ptr)",
        "device.driver.copy_in(a._ptr, host, 8)",
        "copy = self.driver.copy_out",
        "a.device.driver.fill(a._ptr, 0, 8)",
        "x.__array_interface__['data'][0]",
        "getattr(x, '__array_interface__')",
        "ctypes.memmove(a._ptr, other, 8)",
        "ffi.buffer(block, 8)[:]",
        "host_access.occurred = True",
        "memory.host_access.guards = []",
        "lines.append(f'{x}.from_address({y})')",
        "from .._core import load_element",
    ],
)
def test_accesses_are_found(text):
    assert list(accesses(text))


def test_captures_look_at_what_was_told():
    assert not list(accesses("if host_access.occurred: pass", is_capture=True))


CAST = re.compile(r"\((?:const )?(?:char|void|u?int\d+_t|float|double) \*+\)\s*\(?\w+->ptr\b")


def test_c_accesses_it_by_one_function():
    core, wrong = ROOT / "csrc" / "core", []
    for path in sorted(core.glob("*.[ch]")):
        if path.name == "memory.c":  # of buffers, whose addresses are shown
            continue
        wrong += [
            f"{path.name}:{number}: {line.strip()}"
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if CAST.search(line)
        ]
    assert wrong == ["core.h:" + wrong[0].partition(":")[2]], wrong
    assert "return (char *)a->ptr;" in wrong[0]


# ---- each access is told


def told(call):
    """Whether a call tells captures of host access."""
    before, host_access.occurred = host_access.occurred, False
    try:
        call()
        return host_access.occurred
    finally:
        host_access.occurred = before


A = pa.arange(6.0).reshape(2, 3)
MASK = pa.asarray([True, False])


def assign(key, value):
    A[key] = value


TOLD = {
    "float": lambda: float(A[0, 1]),
    "int": lambda: int(A[0, 1]),
    "complex": lambda: complex(A[0, 1]),
    "index": lambda: [1, 2][pa.asarray(1)],
    "bool": lambda: bool(A[0, 1]),
    "item": lambda: A.item(3),
    "item of a view": lambda: A[0, 1].item(),
    "tolist": A.tolist,
    "tobytes": A.tobytes,
    "repr": lambda: repr(A),
    "asnumpy": lambda: pa.asnumpy(A),
    "NumPy": lambda: np.asarray(A),
    "array interface": lambda: A.__array_interface__,
    "DLPack": A.__dlpack__,
    "data": lambda: A.data,
    "an element's assignment": lambda: assign((0, 0), 1.0),
    "a mask": lambda: A[MASK],
    "an index array": lambda: A[[1, 0]],
    "a mask's assignment": lambda: assign(MASK, 1.0),
    "nonzero": lambda: pa.nonzero(MASK),
    "zeros": lambda: pa.zeros(3),
    "zeros_like": lambda: pa.zeros_like(A),
    "ones": lambda: pa.ones(3),
    "full": lambda: pa.full(3, 2.0),
    "copy": A.copy,
    "upload": lambda: pa.asarray([1.0, 2.0]),
    "random numbers": lambda: pa.random.default_rng(1).random(3),
}


@pytest.mark.parametrize("name", TOLD)
def test_captures_are_told(name):
    assert told(TOLD[name])


NOT_TOLD = {
    "slice": lambda: A[1:],
    "T": lambda: A.T,
    "reshape": lambda: A.reshape(3, 2),
    "empty": lambda: pa.empty(3),
    "empty_like": lambda: pa.empty_like(A),
    "launch": lambda: A + 1,
    "rows": lambda: list(A),
    "shares_memory": lambda: pa.shares_memory(A, A[1:]),
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_captures_are_not_told_of_what_reads_and_writes_nothing(name):
    NOT_TOLD[name]()
    assert not told(NOT_TOLD[name])


def test_what_an_observer_reads_is_no_access_of_the_program():
    def call():
        with access.by_observer():
            access.numpy_view(A)

    assert not told(call)


@pytest.mark.parametrize("name", ["float", "item", "tolist", "zeros", "asnumpy"])
def test_a_capture_is_refused_then(name):
    with pytest.raises(RuntimeError, match="read or wrote array memory other than by launches"), pa.capture():
        TOLD[name]()


def test_a_capture_records_launches_in_their_place():
    a = pa.arange(4.0)
    with pa.capture() as graph:
        copy, ones = a.copy(), pa.ones(3)
        a[0] = 7.0
    assert len(graph.launches) == 3
    assert (copy.tolist(), ones.tolist(), a.tolist()) == ([0, 1, 2, 3], [1, 1, 1], [7, 1, 2, 3])
