"""Prints docs/reference/*.md from the tables in the code.

`python docs/make_reference.py` rewrites the pages; with `--check` it changes nothing, names the stale
ones, and fails if there are any.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
import math
import pkgutil
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import pyarray as pa
from pyarray import api, config, dtypes, errors, fusion
from pyarray.lang import builtins as language
from pyarray.lang import infer_access, parse

FOLDER = Path(__file__).resolve().parent / "reference"
NOTE = "<!-- Printed by docs/make_reference.py from the tables in the code: change those and run it. -->"
KINDS = {"b": "bool", "i": "signed", "u": "unsigned", "f": "floating", "c": "complex"}
# What the Array API standard has no chapter for, in the order in which a reader meets it.
FURTHER = (
    "ndarray", "BufferView", "asnumpy", "Device", "get_device", "get_default_device",
    "set_default_device", "default_device", "show_config", "Stream", "Event", "current_stream", "synchronize",
    "get_default_memory_pool", "MemoryPool",
    "kernel", "func", "debug",
    "autotune", "Config", "load_kernel", "cache_info", "transfer_info", "capture", "Graph", "In", "Out", "InOut",
    "RawKernel", "RawModule", "ElementwiseKernel", "ReductionKernel",
    "dump", "dump_tag", "load_dump", "trace", "cost_analysis", "TimeModel",
    "constexpr", "ndrange", "tiles", "unordered", *language.ATOMICS,
)  # fmt: skip


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown; bars in cells are escaped."""
    lines = [list(head), ["---"] * len(list(head)), *map(list, rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def first_sentence(thing: Any) -> str:
    """The first sentence of a docstring, on one line."""
    return sentence(inspect.getdoc(thing))


def sentence(text: str | None) -> str:
    """The first of a text, on one line."""
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph)[0].rstrip(".:") + "." if paragraph else ""


def summary(name: str, thing: Any) -> str:
    """`first_sentence` without the call that some docstrings begin with."""
    text = re.sub(rf"^{re.escape(name)}\([^)]*\): ", "", first_sentence(thing))
    return text if text[:1].isupper() or text[:1] == "`" else text.rstrip(".")


def signature(name: str, thing: Any) -> str:
    """`name(x, /, *, out=None)`, without annotations."""
    try:
        parsed = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = [p.replace(annotation=p.empty) for p in parsed.parameters.values() if p.name != "self"]
    return name + str(parsed.replace(parameters=plain, return_annotation=parsed.empty))


def kinds(letters: str) -> str:
    """Words for kind letters."""
    return "any" if set(letters) == set(KINDS) else ", ".join(KINDS[k] for k in letters)


# ---- pages


def chapters() -> Iterable[tuple[str, str, list[str]]]:
    """(module, title, public names) of each chapter of the API."""
    modules = [m.name for p in (api, fusion) for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")]
    for module in sorted(modules, key=lambda m: m.rpartition(".")[2]):
        chapter = importlib.import_module(module)
        names = sorted(n for n in getattr(chapter, "__all__", ()) if hasattr(pa, n))
        if names:
            yield module, first_sentence(chapter).partition(":")[0].rstrip("."), names


def functions() -> str:
    """The namespace, chapter by chapter, and what an array has."""
    parts = [
        "# Functions",
        "Where an array is expected, a NumPy array or anything with `__dlpack__` does, too; a list must "
        "go through `pa.asarray`. What the Array API standard has and these tables don't name is not "
        "there yet.",
    ]
    for _, title, names in chapters():
        rows = [_row(n, getattr(pa, n)) for n in names]
        parts += [f"## {title}", table(("name", "what it is"), rows)]
    for module in (pa.linalg, pa.fft, pa.nn, pa.special, pa.quaternion, pa.lib.stride_tricks, pa.testing, pa.random):
        calls = {n: getattr(module, n) for n in module.__all__ if not inspect.isclass(getattr(module, n))}
        rows = [(f"`{signature(n, v)}`", summary(n, v)) for n, v in sorted(calls.items())]
        parts += [f"## `{module.__name__}`", table(("name", "what it is"), rows)]
    own = {n: v for n, v in vars(pa.random.Generator).items() if not n.startswith("_")}
    parts += ["A `Generator` has:", table(("name", "what it is"), _members(pa.random.Generator, own))]
    parts += ["## `pyarray.torch`", table(("name", "what it is"), _torch_rows())]
    further = [(f"`{_further(n)}`", first_sentence(getattr(pa, n))) for n in FURTHER]
    parts += ["## Arrays, kernels and devices", table(("name", "what it is"), further)]
    parts += ["## What an array has", table(("name", "what it is"), _members(pa.ndarray))]
    own = {n: v for n, v in vars(pa.BufferView).items() if not n.startswith("_")}
    parts += ["A `BufferView` has beyond that:", table(("name", "what it is"), _members(pa.BufferView, own))]
    return "\n\n".join(parts)


def _torch_rows() -> list[tuple[str, str]]:
    """What `pyarray.torch` has, read from its text: importing it would take torch."""
    folder = Path(pa.__file__).parent / "torch"
    rows = []
    for node in ast.parse((folder / "__init__.py").read_text()).body:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        module = ast.parse((folder / f"{node.module}.py").read_text())
        functions_of_module = {f.name: f for f in module.body if isinstance(f, ast.FunctionDef)}
        for function in (functions_of_module[alias.name] for alias in node.names if alias.name in functions_of_module):
            arguments = function.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                argument.annotation = None
            rows.append((f"`{function.name}({ast.unparse(arguments)})`", sentence(ast.get_docstring(function))))
    return sorted(rows)


def _row(name: str, thing: Any) -> tuple[str, str]:
    if {getattr(x, "__module__", "").partition(".")[0] for x in (thing, type(thing))} & {"numpy"}:
        return f"`{name}`", "NumPy's"
    if not callable(thing):
        return f"`{name}`", f"`{thing!r}`"
    return f"`{signature(name, thing)}`", summary(name, thing)


def _atomic(name: str) -> str:
    return f"{name}(v, i, {'expected, desired' if name == 'atomic_cas' else 'x'})"


def _further(name: str) -> str:
    thing = getattr(pa, name)
    if name.startswith("atomic_"):
        return _atomic(name)
    if name == "ndrange":
        return "ndrange(*sizes)"
    if name == "tiles":
        return "tiles(sizes, tile)"
    if name == "unordered":
        return "unordered(range)"
    if name in ("ndarray", "constexpr", "Device", "In", "Out", "InOut"):
        return name
    return signature(name, thing)


def _members(kind: type, only: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    rows = []
    for name in sorted(only if only is not None else dir(kind)):
        thing = inspect.getattr_static(kind, name)
        if name.startswith("_"):
            continue
        if isinstance(thing, property):
            rows.append((f"`{name}`", first_sentence(thing)))
        elif callable(thing):
            shown = signature(name, thing)
            first = next(iter(inspect.signature(thing).parameters), None)
            if first in ("a", "x"):  # functions that serve as methods: their first parameter is the array
                shown = re.sub(rf"\({first}(, /)?(, )?", "(", shown)
            rows.append((f"`{shown}`", summary(name, thing)))
    return rows


def dtype_rows() -> str:
    """The types, their promotion, and what Python's numbers do."""
    rows = [
        (f"`{d.name}`", KINDS[d.kind], str(d.itemsize), f"`{d.numpy.name}`", f"`{d.ctype}`", _limits(d))
        for d in dtypes.ALL
    ]
    names = [f"`{d.name}`" for d in dtypes.ALL]
    cells = [[f"`{a}`", *(_promoted(a, b) for b in dtypes.ALL)] for a in dtypes.ALL]
    python = dtypes.PYTHON_KIND
    scalars = [(f"`{d}`", *(f"`{dtypes.promote_scalar(d, t)}`" for t in python)) for d in dtypes.ALL]
    members = {name: dtypes.of_kinds(letters) for name, letters in dtypes.CATEGORIES.items()}
    groups = [(f"`{name}`", ", ".join(f"`{d}`" for d in found)) for name, found in members.items()]
    return "\n\n".join(
        (
            "# Element types",
            "Everywhere that a dtype is expected, its name, a NumPy dtype or scalar type, and Python's "
            "`bool`, `int`, `float` and `complex` do as well.",
            table(("dtype", "kind", "bytes", "NumPy", "C", "range"), rows),
            "## Two arrays",
            "The common type of two arrays is the smallest that holds both; an integer with a floating "
            "type gives the floating type. “–”: there is none, and the operation is a `TypeError`.",
            table(("", *names), cells),
            "## An array and a Python number",
            "Python's numbers are weak: they change the kind of an array's type where they must, never "
            "its width. An integer that the array's integer type can't hold is an `OverflowError`.",
            table(("array", *(f"`{t.__name__}`" for t in python)), scalars),
            "## Groups",
            table(("name", "types"), groups),
        )
    )


def _limits(d: dtypes.DType) -> str:
    if d.kind in "iu":
        info = pa.iinfo(d)
        return f"{info.min} … {info.max}"
    if d.kind == "b":
        return "False, True"
    facts = pa.finfo(d)
    return f"± {facts.max:.5g}, eps {facts.eps:.3g}" + (" (each part)" if d.kind == "c" else "")


def _promoted(a: dtypes.DType, b: dtypes.DType) -> str:
    try:
        return f"`{dtypes.promote(a, b)}`"
    except TypeError:
        return "–"


def kernel_functions() -> str:
    """What kernels can call."""
    spellings: dict[str, list[str]] = {name: [] for name in language.FUNCTIONS}
    for module, prefix in ((builtins, ""), (math, "math."), (pa, "pa.")):
        for name in sorted(dir(module)):
            thing = getattr(module, name)
            if not name.startswith("_") and callable(thing) and language.name_of(thing) in spellings:
                spellings[str(language.name_of(thing))].append(f"`{prefix}{name}`")
    for name in sorted(dir(np)):  # only where nothing else is: NumPy's own names differ between its versions
        row = language.name_of(getattr(np, name)) if callable(getattr(np, name)) else None
        if row in spellings and not spellings[row]:
            spellings[row].append(f"`np.{name}`")
    rows = [
        (f"`{f.name}`", ", ".join(spellings[f.name]), str(f.arity), kinds(f.kinds), _result(f), f.doc)
        for f in language.FUNCTIONS.values()
    ]
    atomics = [
        (f"`pa.{_atomic(name)}`", kinds(infer_access.ATOMIC_KINDS.get(op, "biu")))
        for name, op in language.ATOMICS.items()
    ]
    markers = [(f"`pa.{n}`", first_sentence(getattr(pa, n))) for n in ("ndrange", "tiles", "unordered", "constexpr")]
    return "\n\n".join(
        (
            "# Functions in kernels",
            "Operators, `len`, `range`, conditional expressions and casts (`int(x)`, `float(x)`, "
            "`pa.int8(x)`) are part of the [language](../language.md); below is what is called by name. "
            "NumPy's functions of the same names (`np.sin`, `np.maximum`) are known, too.",
            "An argument of a kind outside the column “kinds” is lifted: bool to int8, an integer to "
            "float64. float16 and bfloat16 are computed in float32 and rounded.",
            table(("row", "written", "arguments", "kinds", "result", "what it is"), rows),
            "`pow(x, y)` and its likes are `x ** y`. `min` and `max` take two or more numbers.",
            "## Atomics",
            "One indivisible update of `v[i]`; the value before it is the result. The index of an N-D "
            "array is a tuple.",
            table(("written", "kinds of the array"), atomics),
            "## Markers",
            table(("written", "what it is"), markers),
        )
    )


def _result(f: language.BuiltinFunction) -> str:
    return {"same": "the same type", "bool": "bool", "real": "the same type; of complex, its part"}[f.result]


def settings() -> str:
    """The environment variables."""
    rows = [
        (f"`{s.name}`", s.kind.words, "unset" if s.default is None else f"`{_shown(s.default)}`",
         "yes" if s.code else "no", s.doc)
        for s in config.SETTINGS.values()
    ]  # fmt: skip
    return "\n\n".join(
        (
            "# Settings",
            "Environment variables. `pyarray.config.set(name, value)` overrides one for the process, with "
            "a text as in the environment or with a Python value; `pyarray.config.get(name)` reads what is "
            "in force. What a setting can't be is a `ValueError` that says what was expected. "
            "A variable that is empty counts as unset. `PYARRAY_DEBUG` is read from the environment once, "
            "when pyarray is imported; afterwards, `pa.debug()` and `pyarray.config.set` are the switches.",
            table(("name", "value", "default", "changes compiled code", "what it says"), rows),
            "A flag is one of `1 true yes on` or `0 false no off`. Bytes may end with `K`, `M` or `G`.",
        )
    )


def _shown(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)


def exceptions() -> str:
    """pyarray's own exceptions."""
    parts = ["# Exceptions", "Everything else raises the built-in exception that NumPy raises."]
    for name, kind in vars(errors).items():
        if name.startswith("_") or not (inspect.isclass(kind) and issubclass(kind, Exception)):
            continue
        bases = [b for b in kind.__bases__ if not b.__name__.startswith("_")]
        base = ", ".join(f"`{b.__name__}`" for b in bases)
        parts += [f"## `pa.{name}`", f"Base: {base}.", inspect.getdoc(kind) or ""]
        types_: dict[str, Any] = {}
        for part in kind.__mro__:  # attributes of its own, then those that it shares with others
            if part is kind or part.__name__.startswith("_"):
                types_ |= {n: t for n, t in inspect.get_annotations(part).items() if not n.startswith("_")}
        if not types_ and "__init__" in vars(kind):
            parameters = inspect.signature(kind).parameters.values()
            types_ = {p.name: p.annotation for p in parameters if p.name != "message"}
        if types_:
            parts.append(table(("attribute", "type"), ((f"`{n}`", f"`{t}`") for n, t in types_.items())))
    parts += ["## `Frame`", inspect.getdoc(errors.Frame) or ""]
    fields = typing.get_type_hints(errors.Frame).items()
    rows = ((f"`{n}`", f"`{t.__name__}`") for n, t in fields)
    return "\n\n".join([*parts, table(("attribute", "type"), rows)])


def outside() -> str:
    """What the kernel language refuses."""
    refused: dict[tuple[str, str], list[str]] = {}
    for node, row in parse._ADVICE.items():
        refused.setdefault(row, []).append(f"`{node.__name__}`")
    rows = [(what, ", ".join(nodes), advice) for (what, advice), nodes in refused.items()]
    modules = refusing_modules()
    gradients = [module for module in modules if ".gradient." in module.__name__]
    return "\n\n".join(
        (
            "# What is not in the kernel language",
            "Each is a `pa.CompileError` at the kernel's first launch: file and line, “… is not part of "
            "the kernel language”, the line with a caret under the construct, and the advice.",
            table(("construct", "syntax node", "advice"), rows),
            "## Other messages",
            "What depends on types and names. “…” stands for a name, a type or a number.",
            table(("message", "advice"), _all_messages(module for module in modules if module not in gradients)),
            "## Programs, and what is said to them",
            "The statements stand in the loop of a kernel `k(v, z, b, n)`: arrays of float32, complex64 "
            "(2-D) and uint8, and an integer. Each is one of the tests.",
            table(("statement", "message", "advice"), _refused("test_rejected")),
            "## Gradients that are refused",
            "The statements stand in the loop of a kernel `k(v, y, c, n)`: arrays of float64, one of int64, and an "
            "integer. The kernel itself is in the language; the first call of `k.grad` is the `pa.CompileError`, since "
            "what it computes would be wrong.",
            table(("statement", "message", "advice"), _refused("test_rejected_gradients")),
            "All messages of these, “…” standing for a name, a type or a number:",
            table(("message", "advice"), _all_messages(gradients)),
            "Calls that are refused, by the arguments or by what is called, are a `TypeError` or a `ValueError`. `k` "
            "is a kernel of `v`, `y`, `c` and a number, `tuned` one under `pa.autotune`; `g` and `h` are arrays.",
            table(("call", "message"), _refused_calls()),
        )
    )


def refusing_modules() -> list[types.ModuleType]:
    """The modules of the language that refuse programs, by name."""
    folder = Path(parse.__file__).parent
    paths = (path.relative_to(folder).with_suffix("") for path in sorted(folder.rglob("*.py")))
    modules = [
        importlib.import_module(".".join(("pyarray.lang", *path.parts))) for path in paths if path.stem[0] != "_"
    ]
    return [module for module in modules if any(True for _ in refusals(module))]


def refusals(module: types.ModuleType) -> Iterable[tuple[ast.FunctionDef, ast.Call]]:
    """The calls `….fail(place, message, advice)` in a module, and the functions that they stand in; without those that
    pass on a message, of another function or of an error."""
    seen = set[ast.Call]()
    functions = (n for n in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(n, ast.FunctionDef))
    for function in reversed(list(functions)):  # the inner ones first
        given = {x.arg for x in function.args.args}
        for call in (n for n in ast.walk(function) if isinstance(n, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name in ("fail", "refuse") and len(call.args) > 1 and call not in seen:
                seen.add(call)
                message = call.args[1]
                is_text = isinstance(message, (ast.JoinedStr, ast.Constant))
                if is_text or (isinstance(message, ast.Name) and name == "fail" and message.id not in given):
                    yield function, call


def _all_messages(modules: Iterable[types.ModuleType]) -> list[tuple[str, str]]:
    unique = {message for module in modules for message in _messages(module)}
    return sorted(unique, key=lambda m: (m[0].lower().lstrip("'… "), m))


def _refused_calls() -> Iterable[tuple[str, str]]:
    programs = _tests_of("test_rejected_gradients")
    for call in programs.CALLS:
        try:
            programs.call(call)
        except (TypeError, ValueError) as error:
            yield f"`{call}`", str(error)


def _tests_of(name: str) -> types.ModuleType:
    """A module of tests/lang."""
    path = FOLDER.parents[1] / "tests" / "lang" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    programs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(programs)
    return programs


def _refused(name: str) -> Iterable[tuple[str, str, str]]:
    """(program, message, advice) of each program that a file of tests/lang holds to be refused."""
    programs = _tests_of(name)
    for statement, expected in programs.STATEMENTS.items():
        if expected is None:
            continue
        try:
            programs.launch(statement)
        except errors.CompileError as error:
            message, *_, last = str(error).split("\n")
            advice = last if len(str(error).split("\n")) > 3 else ""
            shown = " ↵ ".join(line.strip() for line in statement.split("\n"))
            yield f"`{shown}`", message.partition(": ")[2], advice


def _messages(module: types.ModuleType) -> Iterable[tuple[str, str]]:
    """Message and advice of each refusal in a module."""
    for function, call in refusals(module):
        nodes = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
        before = [(n.targets[0], n.value) for n in nodes if n.lineno < call.lineno]
        local = {target.id: value for target, value in before if isinstance(target, ast.Name)}
        constants = {name: ast.Constant(x) for name, x in vars(module).items() if isinstance(x, str)}
        local = constants | local
        texts = [_text(a, local) for a in call.args[1:]]
        if texts and not set(texts[0]) <= set("… "):
            yield texts[0], texts[1] if len(texts) > 1 else ""


def _text(node: ast.AST, local: dict[str, ast.expr], depth: int = 0) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(v.value if isinstance(v, ast.FormattedValue) else v, local, depth) for v in node.values)
    if isinstance(node, ast.Name) and node.id in local and depth < 3:
        return _text(local[node.id], local, depth + 1)
    return "…"


def deviations() -> str:
    """Where NumPy does something else."""
    path = FOLDER.parent / "deviations.py"
    spec = importlib.util.spec_from_file_location("deviations", path)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules["deviations"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    rows = [(row.what, row.numpy, row.here) for row in made.DEVIATIONS]
    return "\n\n".join(
        (
            "# What differs from NumPy",
            "What isn't in this table and differs is a bug: a [test](../design/differential.md) calls every "
            "function that takes arrays with drawn operands, here and in NumPy, and takes only these "
            "differences.",
            table(("what", "NumPy", "pyarray"), rows),
        )
    )


PAGES: dict[str, Callable[[], str]] = {
    "functions.md": functions,
    "dtypes.md": dtype_rows,
    "builtins.md": kernel_functions,
    "settings.md": settings,
    "deviations.md": deviations,
    "errors.md": exceptions,
    "language_errors.md": outside,
}


def pages() -> dict[Path, str]:
    """Path → text of every page, as it should be now."""
    return {FOLDER / name: f"{NOTE}\n\n{_wrapped(page())}\n" for name, page in PAGES.items()}


def _wrapped(page: str) -> str:
    """With paragraphs in lines of at most 120 columns; tables have a row to a line."""
    lines = (line if line.startswith(("|", "#")) else _filled(line) for line in page.split("\n"))
    return "\n".join(lines)


def _filled(line: str) -> str:
    return textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False) if len(line) > 120 else line


def stale() -> list[Path]:
    """Pages whose text is not what the tables say."""
    wanted = pages()
    current = {path: path.read_text(encoding="utf-8") for path in wanted if path.exists()}
    return [path for path, text in wanted.items() if current.get(path) != text]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python docs/make_reference.py [--check]", file=sys.stderr)
        return 2
    if arguments:
        old = stale()
        for path in old:
            print(f"{path} is stale: run python docs/make_reference.py", file=sys.stderr)
        return 1 if old else 0
    FOLDER.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
