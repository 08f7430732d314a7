"""The house keeps its order: who may import whom, how long files and functions get, what importing costs."""

import ast
import functools
import graphlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from syntax_trees import nodes

import pyarray as pa

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pyarray"

# docs/design/layout.md; a module imports only from earlier rows, or from its own
ORDER = (
    {"config", "docstring_sections", "docstrings", "errors", "keywords", "lazy", "locks", "weak_set"}
    | {"_core", "_runtime"},
    {"dtypes", "shapes", "annotations", "kernel_types", "structured_dtypes"},
    {"driver", "lang"},
    {"memory", "typing"},
    {"array", "array_convert", "array_format", "array_hooks", "array_host", "array_marks", "array_operators"}
    | {"array_views", "buffer_view", "structured_array", "structured_values"},
    {"dlpack", "cuda_interface", "tensors"},
    {"jit"},
    {"tune"},
    {"kernels"},
    {"api"},
    {"fusion"},
    {"linalg", "fft", "nn", "random", "special", "quaternion", "lib", "testing"},
    {"debug"},
    {"interop"},
    {"torch"},
    {"__init__", "warm", "__main__"},
)
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row}
FILES = sorted(PACKAGE.rglob("*.py"))
CSRC = sorted(path for path in (ROOT / "csrc").rglob("*.*") if path.suffix in (".c", ".h"))


def part_of(path):
    """The row's name that a file belongs to: its folder, or its own name at the top."""
    inner = path.relative_to(PACKAGE)
    return inner.parts[0] if len(inner.parts) > 1 else inner.stem


@functools.cache
def imports(path):
    """(name of the part imported, line, whether it is inside a function) for imports from this package."""
    found, functions = [], [n for n in nodes(path) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = {id(n) for f in functions for n in ast.walk(f) if isinstance(n, (ast.Import, ast.ImportFrom))}
    package = ("pyarray", *path.relative_to(PACKAGE).parts[:-1])
    for node in nodes(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            names = [f"{module}.{alias.name}" for alias in node.names] if module == "pyarray" else [module]
        for name in names:
            if name == "pyarray" or name.startswith("pyarray."):
                part = name.split(".")[1] if "." in name else "__init__"
                found.append((part, node.lineno, id(node) in inside))
    return found


def relative(path):
    return path.relative_to(ROOT)


def test_each_file_has_a_place():
    assert {part_of(path) for path in FILES} <= RANK.keys(), "docs/design/layout.md says what is where"


# Only type checkers follow these: arrays have methods from array_views, and slices that are BufferViews.
TYPES_ALONE = {
    ("pyarray.array", "pyarray.buffer_view"),
    ("pyarray.array_host", "pyarray.array"),
    ("pyarray.array_marks", "pyarray.array"),
    ("pyarray.array_views", "pyarray.array"),
}


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def modules_imported(path):
    """Modules of this package that a file names in imports, those for type checkers too."""
    modules = {module_name(p) for p in FILES}
    package = [*path.relative_to(ROOT).parts[:-1]]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & modules
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            names = {f"{source}.{alias.name}" for alias in node.names}
            yield from (names & modules) or ({source} & modules)


def test_no_circle_of_imports():
    """Files that import each other can't be read one after the other. `CycleError` names them."""
    graph = {}
    for path in FILES:
        name = module_name(path)
        graph[name] = {m for m in modules_imported(path) if m != name and (name, m) not in TYPES_ALONE}
    graphlib.TopologicalSorter(graph).prepare()


def test_imports_go_downwards():
    wrong = [
        f"{relative(path)}:{line}: {part_of(path)} must not import {target}"
        for path in FILES
        for target, line, _ in imports(path)
        if target != part_of(path) and RANK.get(target, len(ORDER)) > RANK[part_of(path)]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_hidden_imports():
    hidden = [f"{relative(path)}:{line}" for path in FILES for _, line, inside in imports(path) if inside]
    assert not hidden, "\n".join(hidden)


def test_files_and_functions_fit():
    long = [f"{relative(path)}: split the file" for path in FILES if path.read_text().count("\n") > 450]
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                size = (node.end_lineno or 0) - node.lineno + 1
                if size > 60:
                    long.append(f"{relative(path)}:{node.lineno} {node.name} has {size} lines, of at most 60")
    assert not long, "\n".join(long)


MACROS = re.compile(r"\bPy_(CLEAR|X?SETREF|X?DECREF|X?INCREF|VISIT)\([^;]*(\+\+|--)")


def test_macros_of_references_get_no_side_effects():
    """They may evaluate an argument twice."""
    lines = [(p, n, line) for p in CSRC for n, line in enumerate(p.read_text().splitlines(), 1)]
    assert not [f"{relative(path)}:{number}: {line}" for path, number, line in lines if MACROS.search(line)]


def test_lines_have_at_most_120_columns():
    """Those of Python are the linter's. Rows of tables have any length, and so has what programs print."""
    written = [ROOT / "Makefile", ROOT / ".ci/run", ROOT / "pyproject.toml", ROOT / "mkdocs.yml", *CSRC]
    written += [
        p for p in (ROOT / "tests").rglob("*.[ch]*") if p.suffix in (".c", ".cpp", ".h") and "golden" not in p.parts
    ]
    long = []
    for path in (*written, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")):
        printed = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if path.suffix == ".md" and line.lstrip().startswith("```"):
                printed = not printed
            if len(line) > 120 and not printed and not line.startswith("|"):
                long.append(f"{relative(path)}:{number}")
    assert not long, "\n".join(long)


def test_importing_loads_no_gpu_package_no_torch_and_starts_no_compiler():
    code = (
        "import subprocess, sys\n"
        "def refuse(*a, **k): raise AssertionError('a process was started')\n"
        "subprocess.Popen = refuse\n"
        "import pyarray\n"
        "heavy = {'torch', 'dask', 'cuda', 'hip', 'rocm', 'matplotlib', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "late = ('fusion', 'debug.', 'kernels.cpp', 'random', 'special', 'tune', 'testing', 'torch', 'lang.ir',\n"
        "        'lang.pipeline', 'jit.kernel.', 'jit.compile', 'jit.launch.', 'jit.saved')\n"
        "loaded = [m for m in sys.modules if m.startswith(tuple(f'pyarray.{name}' for name in late))]\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_are_imported_when_first_used_are_those_that_type_checkers_see():
    """`_LAZY` and the imports under `TYPE_CHECKING` of the package say the same."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    block = next(n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test))
    imports = [n for n in block.body if isinstance(n, ast.ImportFrom) and n.module != "kernel_types"]
    named = {a.name: n.module for n in imports if n.module for a in n.names}
    assert named == pa._LAZY
    assert {a.name for n in imports if not n.module for a in n.names} == set(pa._LAZY_MODULES)
    assert all(name in dir(pa) and getattr(pa, name) is getattr(pa, name) for name in pa._LAZY)


def test_arrays_work_without_a_compiler_and_the_first_kernel_says_what_to_do(tmp_path):
    code = (
        "import numpy as np, pyarray as pa\n"
        "a = pa.asarray(np.arange(8.0))\n"
        "assert a[2:6].offset == 2 and repr(a[::2]) and pa.asnumpy(a[1:])[0] == 1 and a[3].item() == 3\n"
        "try:\n"
        "    a + a\n"
        "except pa.DeviceError as error:\n"
        "    for word in ('gcc', 'clang', 'pip install ziglang'):\n"
        "        assert word in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    environment = {
        "PATH": str(tmp_path),
        "PYARRAY_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_the_part_for_torch_is_imported_when_it_is_asked_for():
    code = (
        "import sys, pyarray as pa\n"
        "assert not {'torch', 'pyarray.torch'} & set(sys.modules)\n"
        "sys.modules['torch'] = None\n"  # as if it weren't installed
        "try:\n"
        "    pa.torch\n"
        "except ModuleNotFoundError as error:\n"
        "    assert 'pip install torch' in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


PUBLIC = ("fft", "lib", "lib.stride_tricks", "linalg", "nn", "random", "special", "testing")


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_list_public_names_alone(name):
    module = importlib.import_module(f"pyarray.{name}")
    assert [n for n in dir(module) if not n.startswith("_")] == sorted(module.__all__)
    assert {"__name__", "__doc__", "__all__"} <= set(dir(module))
    assert all(hasattr(module, n) for n in dir(module))
