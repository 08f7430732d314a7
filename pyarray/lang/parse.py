"""Finds the source text of Python functions, and refuses syntax outside the kernel language.

Types and names are not known here: whether `x` exists, or is an array, `infer` finds out."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import CompileError, with_article
from .loc import Loc

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
# The attribute of a function with the lines that it was made of: other threads may define one of the same name, whose
# text is then under its path in `linecache`.
_TEXT = "__pyarray_text__"


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """A Python function as text: its tree, the file's lines as they were when it was decorated, and the
    function itself (for globals and closure, which are read at each compile). `scope` has the local names
    that its annotations use. Of a function that is defined in another one, `function` is that one."""

    name: str
    path: str
    lines: tuple[str, ...]
    first_line: int
    function: Callable[..., Any]
    scope: Mapping[str, Any] = field(default_factory=dict)
    is_nested: bool = False

    def nested(self, tree: ast.FunctionDef | ast.Lambda, signature: inspect.Signature) -> FunctionSource:
        """A function that is defined in this one."""
        name = getattr(tree, "name", "<lambda>")
        made = FunctionSource(name, self.path, self.lines, tree.lineno, self.function, self.scope, True)
        vars(made).update(node=tree, signature=signature)  # what is known isn't looked for
        return made

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    def annotation(self, name: str) -> Any:
        """The parameter's annotation as an object, None without one. Raises `TypeError` for text that means
        nothing."""
        annotation = self.signature.parameters[name].annotation
        if annotation is inspect.Parameter.empty:
            return None
        if not isinstance(annotation, str):
            return annotation
        closure = inspect.getclosurevars(self.function).nonlocals
        try:
            return eval(annotation, dict(self.function.__globals__), {**self.scope, **closure})
        except Exception as error:
            what = f"the annotation of {name!r}, {annotation!r}, can't be evaluated"
            raise TypeError(f"{self.name}(): {what}: {error}") from None

    @functools.cached_property
    def node(self) -> ast.FunctionDef | ast.Lambda:
        return _find(self)

    @functools.cached_property
    def stored(self) -> frozenset[str]:
        """Names that the function assigns, loop variables among them, or gives to functions that it defines."""
        nodes = (n for n in own_nodes(self.node) if n is not self.node)
        return frozenset(name for n in nodes if (name := stored_name(n)) is not None)

    @functools.cached_property
    def rebound(self) -> frozenset[str]:
        """Names that something other than a `for` assigns, or a `for` in a loop over the same name."""
        names_assigned: set[str] = set()

        def visit(node: ast.AST, outer: set[str]) -> None:
            """`outer`: the names of the loops around."""
            target = None
            if isinstance(node, ast.For):
                target, names = node.target, _names_in(node.target)
                names_assigned.update(names & outer)
                outer = outer | names
            elif (name := stored_name(node)) is not None:
                names_assigned.add(name)
            elif isinstance(node, ast.arg):
                names_assigned.add(node.arg)
            if isinstance(node, _FUNCTIONS) and node is not self.node:
                return
            for child in ast.iter_child_nodes(node):
                if child is not target:
                    visit(child, outer)

        visit(self.node, set())
        return frozenset(names_assigned)

    def loc(self, node: ast.AST) -> Loc:
        """Place of an AST node; columns count characters, not bytes."""
        found = self._locs.get(node)
        if found is None:
            found = self._locs[node] = self._find_loc(node)
        return found

    @functools.cached_property
    def _locs(self) -> dict[ast.AST, Loc]:
        return {}

    def _find_loc(self, node: ast.AST) -> Loc:
        line = getattr(node, "lineno", self.first_line)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        column = _characters(text, getattr(node, "col_offset", 0)) + 1
        end = 0
        if getattr(node, "end_lineno", None) == line:
            end = _characters(text, node.end_col_offset) + 1  # type: ignore[attr-defined]
        return Loc(self.path, line, column, end)

    def stored_in(self, node: ast.AST) -> frozenset[str]:
        """Names that get a value somewhere in a node of the function."""
        found = self._stored_in.get(node)
        if found is None:
            stores = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
            found = self._stored_in[node] = frozenset(n.id for n in stores)
        return found

    @functools.cached_property
    def _stored_in(self) -> dict[ast.AST, frozenset[str]]:
        return {}

    def fail(self, where: ast.AST | Loc, what: str, instead: str = "") -> NoReturn:
        """Raise `CompileError` with file, line, a caret under the construct, and what to write instead."""
        loc = where if isinstance(where, Loc) else self.loc(where)
        error = CompileError(render(loc, self.lines, what, instead), loc.path, loc.line, loc.column)
        error._said = what, instead
        raise error


_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function but for the bodies of functions that are defined in it."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if node is tree or not isinstance(node, _FUNCTIONS):
            stack += ast.iter_child_nodes(node)


def stored_name(node: ast.AST) -> str | None:
    """The name that a node itself gives a value."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    return node.name if isinstance(node, (ast.FunctionDef, ast.MatchAs)) else None


def is_internal(path: str) -> bool:
    """Whether a code's file is one of this package, or its text is generated."""
    return path.startswith((_PACKAGE, "<pyarray"))


def _characters(text: str, count: int) -> int:
    """How many characters the first `count` bytes of a line are, as far as it has them."""
    return min(count, len(text)) if text.isascii() else len(text.encode()[:count].decode(errors="replace"))


def render(loc: Loc, lines: tuple[str, ...], what: str, instead: str = "") -> str:
    """`file:line: what`, the line, a caret, the advice."""
    message = f"{os.path.basename(loc.path)}:{loc.line}: {what}"
    if 0 < loc.line <= len(lines):
        text = lines[loc.line - 1].rstrip("\n")
        width = max((loc.end or len(text) + 1) - loc.column, 1)
        stripped = text.lstrip()
        pad = loc.column - 1 - (len(text) - len(stripped))
        message += f"\n    {stripped}\n    {' ' * max(pad, 0)}{'^' * width}"
    return f"{message}\n{instead}" if instead else message


def source_of(function: Callable[..., Any], scope: Mapping[str, Any] | None = None) -> FunctionSource:
    """The text of a Python function, taken now: a later edit of the file doesn't reach this function.

    Raises `TypeError` for what is no Python function. Missing text is reported by the first compile, not
    here.
    """
    if isinstance(function, (staticmethod, classmethod)):
        what = f"got {with_article(type(function).__name__)}"
        raise TypeError(f"expected a Python function, {what}; put @{type(function).__name__} above this decorator")
    if not isinstance(function, types.FunctionType):
        raise TypeError(
            f"expected a Python function, got {type(function).__name__}; write def f(...): and decorate that"
        )
    if hasattr(function, "__wrapped__"):
        what = f"{function.__name__!r} is wrapped by another decorator, whose text would be compiled"
        raise TypeError(f"{what}; put this decorator right above the def, and the other one above it")
    code = function.__code__
    lines = getattr(function, _TEXT, None)
    if lines is None:
        linecache.checkcache(code.co_filename)
        lines = linecache.getlines(code.co_filename, function.__globals__)
    names: dict[str, Any] = {}
    # Annotations that are text may name locals of the enclosing function, which no closure keeps.
    if scope and scope is not function.__globals__:
        texts = [text for text in function.__annotations__.values() if isinstance(text, str)]
        names = {name: scope[name] for text in texts for name in _names(text) if name in scope}
    return FunctionSource(function.__name__, code.co_filename, tuple(lines), code.co_firstlineno, function, names)


def _names_in(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def _names(text: str) -> set[str]:
    try:
        return _names_in(ast.parse(text, mode="eval"))
    except SyntaxError:
        return set()


@functools.lru_cache(maxsize=64)
def _module(lines: tuple[str, ...], path: str) -> ast.Module:
    return ast.parse("".join(lines), path)


def _functions_at(line: int, tree: ast.Module) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """Functions and lambdas that begin in a line, that of the first decorator. Only what reaches over the line is
    looked into: files are long."""
    around: list[ast.AST] = [tree]
    for node in around:
        for child in ast.iter_child_nodes(node):
            decorators = getattr(child, "decorator_list", None)
            first = getattr(decorators[0] if decorators else child, "lineno", None)
            if first is not None and not first <= line <= child.end_lineno:  # type: ignore[attr-defined]
                continue
            around.append(child)
            if first == line and isinstance(child, (ast.FunctionDef, ast.Lambda)):
                yield child


def _find(source: FunctionSource) -> ast.FunctionDef | ast.Lambda:
    code = source.function.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CompileError(
            f"{source.name!r} ({source.path}:{source.first_line}) is an 'async def', which is not part of "
            "the kernel language\nkernels are plain functions: write def"
        )
    try:
        tree = _module(source.lines, source.path) if source.lines else ast.Module([], [])
    except SyntaxError:
        tree = ast.Module([], [])
    nodes: Sequence[ast.FunctionDef | ast.Lambda] = list(_functions_at(source.first_line, tree))
    if source.name == "<lambda>":
        spans = {(line, column) for line, _, column, _ in code.co_positions() if line is not None and column}
        nodes = [n for n in nodes if isinstance(n, ast.Lambda) and (n.body.lineno, n.body.col_offset) in spans]
    else:
        nodes = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name == source.name]
    if not nodes:
        raise CompileError(
            f"the source of {source.name!r} ({source.path}:{source.first_line}) can't be found: Python keeps "
            "no text of functions typed at the plain prompt, read from stdin, or passed to exec() or -c.\n"
            "Put the function in a file or a notebook cell, or register the text with linecache."
        )
    _check(source, nodes[0])
    return nodes[0]


# What the language has; each other node is refused by name, with the advice beside it.
_ALLOWED = (
    ast.FunctionDef,
    ast.Lambda,
    ast.arguments,
    ast.arg,
    ast.Return,
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.Expr,
    ast.Pass,
    ast.Break,
    ast.Continue,
    ast.BoolOp,
    ast.BinOp,
    ast.UnaryOp,
    ast.IfExp,
    ast.Compare,
    ast.Call,
    ast.Constant,
    ast.Attribute,
    ast.Subscript,
    ast.Name,
    ast.Tuple,
    ast.Slice,
    ast.List,
    ast.keyword,
    ast.NamedExpr,
    ast.Assert,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Match,
    ast.match_case,
    ast.pattern,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)

_ADVICE: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: ("'try'", "a kernel can't raise; test the condition with if"),
    ast.Raise: ("'raise'", "a kernel can't raise; store a flag in an array and test it on the host"),
    ast.With: ("'with'", "use it on the host, around the launch"),
    ast.Import: ("'import'", "import at the top of the file; kernels see the names of their module"),
    ast.ImportFrom: ("'import'", "import at the top of the file; kernels see the names of their module"),
    ast.List: ("a list", "pa.array([x, y, z]) makes an array of it; otherwise use a tuple"),
    ast.Dict: ("a dict", "pass what the kernel needs as parameters"),
    ast.Set: ("a set", "pass what the kernel needs as parameters"),
    ast.ListComp: ("a comprehension", "write a for loop that stores into an array"),
    ast.GeneratorExp: ("a generator expression", "write a for loop"),
    ast.DictComp: ("a comprehension", "write a for loop that stores into an array"),
    ast.SetComp: ("a comprehension", "write a for loop that stores into an array"),
    ast.Yield: ("'yield'", "store results into an array parameter"),
    ast.YieldFrom: ("'yield'", "store results into an array parameter"),
    ast.Await: ("'await'", "kernels are plain functions"),
    ast.AsyncFor: ("'async for'", "kernels are plain functions"),
    ast.AsyncWith: ("'async with'", "kernels are plain functions"),
    ast.AsyncFunctionDef: ("'async def'", "kernels are plain functions"),
    ast.ClassDef: ("a class", "define it outside the kernel"),
    ast.Global: ("'global'", "a kernel can't rebind Python names; store into an array parameter"),
    ast.Nonlocal: ("'nonlocal'", "a kernel can't rebind Python names; store into an array parameter"),
    ast.Delete: ("'del'", "variables of a kernel end with it"),
    ast.Starred: ("'*'", "write the values out"),
    ast.In: ("'in'", "write a loop that compares with =="),
    ast.NotIn: ("'not in'", "write a loop that compares with =="),
}


def _check(source: FunctionSource, root: ast.FunctionDef | ast.Lambda) -> None:
    """Refuse constructs outside the language, and parameters that can't be bound."""
    body = root.body if isinstance(root, ast.FunctionDef) else [root.body]
    of_calls: set[ast.AST] = set()  # lists that a call takes: `infer` says which may
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                of_calls.update(x for x in node.args if isinstance(x, ast.List))
            if node in of_calls:
                of_calls.update(x for x in ast.walk(node) if isinstance(x, ast.List))
                continue
            if isinstance(node, _FUNCTIONS):
                _check_parameters(source, node)
            if isinstance(node, ast.keyword) and node.arg is None:
                source.fail(node, "'**' is not part of the kernel language", "write the arguments out")
            if not isinstance(node, _ALLOWED) or type(node) in _ADVICE:
                what, instead = _ADVICE.get(type(node), (f"{type(node).__name__}", ""))
                where = node if hasattr(node, "lineno") else _parent_of(node, statement)
                source.fail(where, f"{what} is not part of the kernel language", instead)
    _check_parameters(source, root)


def _check_parameters(source: FunctionSource, node: ast.FunctionDef | ast.Lambda) -> None:
    for extra in (node.args.vararg, node.args.kwarg):
        if extra is not None:
            source.fail(extra, f"'*{extra.arg}' is not part of the kernel language", "name each parameter")


def attributes_read(source: FunctionSource) -> dict[str, Any]:
    """Name → attribute → what is read of that in turn, of all names that the function's text reads attributes
    of: `s.a.b + s.c` gives {"s": {"a": {"b": {}}, "c": {}}}."""
    attributes: dict[str, Any] = {}
    for node in ast.walk(source.node):
        path: list[str] = []
        while isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        if path and isinstance(node, ast.Name):
            level = attributes.setdefault(node.id, {})
            for name in path:
                level = level.setdefault(name, {})
    return attributes


def _parent_of(node: ast.AST, root: ast.AST) -> ast.AST:
    """The nearest node with a location: operators have none."""
    return next((p for p in ast.walk(root) if node in ast.iter_child_nodes(p) and hasattr(p, "lineno")), root)


@dataclass(frozen=True, eq=False)
class Capture:
    """A Python value that was compiled in: `name` of a namespace, of a closure's cell or of an object, or the
    item `name` of a list or dict."""

    owner: Any
    name: Any
    value: Any

    def name_in(self, module: str) -> str:
        """Its name in messages of a kernel that is defined in `module`."""
        if isinstance(self.owner, types.CellType):
            return str(self.name)
        if isinstance(self.owner, dict) and "__builtins__" in self.owner:
            home = self.owner.get("__name__")
            return str(self.name) if home == module else f"{home}.{self.name}"
        if isinstance(self.owner, (dict, list)):
            return f"item {self.name!r} of a captured {type(self.owner).__name__}"
        home = getattr(self.owner, "__qualname__", type(self.owner).__qualname__)
        return f"{home}.{self.name}"

    def current_value(self) -> Any:
        """The present value; `Capture` itself, which nothing equals, if the name is gone."""
        try:
            if isinstance(self.owner, (dict, list)):
                return self.owner[self.name]
            if isinstance(self.owner, types.CellType):
                return self.owner.cell_contents
            return getattr(self.owner, self.name)
        except (LookupError, ValueError, AttributeError):
            return Capture


def function_from_text(name: str, text: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function that a text defines, whose source is found."""
    path, lines = f"<pyarray kernel {name}>", text.splitlines(keepends=True)
    linecache.cache[path] = (len(text), None, lines, path)
    exec(compile(text, path, "exec"), scope)
    function: Callable[..., Any] = scope[name]
    setattr(function, _TEXT, lines)
    return function
