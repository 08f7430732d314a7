"""Modules that are imported when they are first used: by threads at the same time, across forks, and not before."""

import ast
import importlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pyarray import jit, lazy

PACKAGE = Path(lazy.__file__).parent
LAZY = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if "submodules(__name__)" in path.read_text())


def named(folder):
    """The modules that a package names for type checkers."""
    tree = ast.parse((folder / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]


def run(code):
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_what_packages_name_is_imported_when_it_is_first_used():
    names = [(".".join(f.relative_to(PACKAGE.parent).parts), name) for f in LAZY for name in named(f)]
    assert ("pyarray.jit", "kernel") in names
    run(
        "import importlib, sys, pyarray\n"
        f"for package, name in {names}:\n"
        "    assert f'{package}.{name}' not in sys.modules, (package, name)\n"
        f"for package, name in {names}:\n"
        "    module = getattr(importlib.import_module(package), name)\n"
        "    assert module is sys.modules[f'{package}.{name}'] and vars(sys.modules[package])[name] is module\n"
    )


def test_a_name_that_is_no_module():
    with pytest.raises(AttributeError, match=r"^module 'pyarray\.jit' has no attribute 'kernels'$"):
        jit.kernels  # noqa: B018
    assert not hasattr(jit, "__wrapped__")


@pytest.mark.parametrize("installed", [False, True])
@pytest.mark.slow
def test_public_names_are_there_without_torch(installed):
    if installed:
        pytest.importorskip("torch")
    run(
        "import inspect, sys\n"
        f"if not {installed}: sys.modules['torch'] = None\n"
        "import pyarray\n"
        "names = [name for name, _ in inspect.getmembers(pyarray)]\n"
        f"assert ('torch' in names) == {installed}\n"
        "assert {'random', 'typing', 'kernel', 'zeros'} <= set(names)\n"
    )


def test_a_module_that_lacks_another_library_says_which(tmp_path, monkeypatch):
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "__init__.py").write_text(
        "from pyarray.lazy import submodules\n__getattr__ = submodules(__name__)\n"
    )
    (tmp_path / "outer" / "inner.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    outer = importlib.import_module("outer")
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        outer.inner  # noqa: B018
    del sys.modules["outer"]


@pytest.mark.slow
def test_threads_use_modules_for_the_first_time_at_the_same_time():
    names = ("kernel", "load_kernel", "autotune", "random", "trace", "ElementwiseKernel", "cost_analysis")
    run(
        "import threading, pyarray as pa\n"
        f"names = {names} * 3\n"
        "start, found = threading.Barrier(len(names)), []\n"
        "def first(name):\n"
        "    start.wait()\n"
        "    found.append((name, getattr(pa, name), pa.func(lambda x: x)))\n"
        "threads = [threading.Thread(target=first, args=(name,)) for name in names]\n"
        "[t.start() for t in threads], [t.join() for t in threads]\n"
        "assert len(found) == len(names)\n"
        "assert all(value is getattr(pa, name) for name, value, _ in found)\n"
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_waits_for_the_imports_of_other_threads(tmp_path):
    (tmp_path / "slow.py").write_text(
        "from __main__ import forked, started\nstarted.set()\nassert not forked.wait(0.2)\ndone = True\n"
    )
    (tmp_path / "main.py").write_text(
        "import os, sys, threading, warnings\n"
        "from pyarray.lazy import import_now\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "started, forked = threading.Event(), threading.Event()\n"
        "thread = threading.Thread(target=import_now, args=('slow',))\n"
        "thread.start(); started.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if import_now('slow').done else 1)\n"
        "forked.set(); thread.join()\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )
    environment = os.environ | {"PYTHONPATH": f"{PACKAGE.parent}"}
    subprocess.run([sys.executable, tmp_path / "main.py"], check=True, timeout=300, env=environment)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_while_its_own_thread_imports_goes_on():
    with lazy._changed:
        lazy._importing[threading.get_ident()] = 1
    try:
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    finally:
        del lazy._importing[threading.get_ident()]
