"""Tables that keep what was decided say, beside them, why their keys are complete."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "pyarray"
FILES = [
    path for part in ("jit", "kernels", "api", "fusion", "tune") for path in sorted((PACKAGE / part).rglob("*.py"))
]
DECORATORS = {"cache", "lru_cache"}
TABLES = {"BoundedCache", "OrderedDict", "WeakKeyDictionary", "WeakValueDictionary"}


def name_of(node):
    """The last part of what is called, or named: `functools.cache` and `cache` are one."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_table(value):
    return (isinstance(value, ast.Dict) and not value.keys) or (
        isinstance(value, ast.Call) and name_of(value) in TABLES | DECORATORS
    )


def tables(tree):
    """Lines of cache decorators, and of tables of modules, classes' instances and closures."""
    local = {n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in f.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from (d.lineno for d in node.decorator_list if name_of(d) in DECORATORS)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and is_table(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            kept = node not in local or any(isinstance(t, ast.Attribute) for t in targets)
            if kept or isinstance(node.value, ast.Call):
                yield node.lineno


def unexplained(text):
    """Lines of tables without a comment on them, or above them and the tables beside them."""
    lines, found = text.splitlines(), set(tables(ast.parse(text)))
    for number in sorted(found):
        first = number
        while first - 1 in found:
            first -= 1
        said = any("#" in lines[k - 1] for k in range(first, number + 1))
        if not said and not lines[first - 2].strip().startswith("#"):
            yield number, lines[number - 1].strip()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_tables_say_why_their_keys_are_complete(path):
    found = [f"{path}:{number}: {line}" for number, line in unexplained(path.read_text())]
    assert not found, "add a comment that says why the key holds all that the result depends on"


@pytest.mark.parametrize(
    "text",
    [
        "@functools.cache\ndef f(): ...",
        "@lru_cache(maxsize=3)\ndef f(): ...",
        "_known = {}",
        "class A:\n    def __init__(self):\n        self.known: dict[int, int] = {}",
        "def f():\n    known = BoundedCache(8)",
        "_known = weakref.WeakKeyDictionary()",
    ],
)
def test_what_has_no_comment_is_found(text):
    *before, last = text.splitlines()
    assert list(unexplained(text))
    target = before[-1] if last.startswith("def") else last
    pad = target[: len(target) - len(target.lstrip())]
    assert not list(unexplained(text.replace(target, f"{pad}# by all\n{target}")))
    assert not list(unexplained(text.replace(target, f"{target}  # by all")))
