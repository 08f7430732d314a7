"""Docstrings of public functions: their prose, and sections in NumPy's style, which are made when they are read.

Parameters and results come from the signature and from `docstrings.toml`, which describes each parameter's name once;
errors are the sentence of the prose that begins with "Raises". Importing the package makes none of it.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_EXAMPLES = r"(?m)^>>> "
_RAISES = r"(?s)(?:(?<=\s)|^)Raises (`\w+`.*?)\.(?=\s|$)"
_ERROR = r"`([\w.]*(?:Error|Exception|Exhausted|Interrupt))`"
# what a text is asked for; all the rest sees the prose alone
_READ = ("expandtabs", "splitlines", "split", "strip", "find", "count", "startswith", "replace")
_READ += (
    "__str__",
    "__contains__",
    "__len__",
    "__eq__",
    "__ne__",
    "__hash__",
    "__repr__",
    "__format__",
    "__add__",
)


class Docstring(str):
    """The docstring of `function`, whose sections are added when it is read. The first `skip` parameters are not
    among them: the array of a method.

    >>> def double(x: "ArrayLike", /) -> "ndarray":
    ...     "Twice `x`. Raises `TypeError` for text."
    >>> print(Docstring(double.__doc__, double))
    Twice `x`.
    <BLANKLINE>
    Parameters
    ----------
    x : ArrayLike
        The operand: an array of any shape, or what `asarray` takes.
    <BLANKLINE>
    Returns
    -------
    ndarray
    <BLANKLINE>
    Raises
    ------
    TypeError
        For text.
    """

    _function: Any
    _skip: int

    def __new__(cls, prose: str, function: Any, skip: int = 0) -> Docstring:
        made = super().__new__(cls, prose)
        made._function, made._skip = function, skip
        return made

    @functools.cached_property
    def text(self) -> str:
        """The prose and the sections."""
        return _assembled(inspect.cleandoc(str.__str__(self)), self._function, self._skip)


def _reader(name: str) -> Callable[..., Any]:
    read = getattr(str, name)

    def method(self: Docstring, *args: Any) -> Any:
        return read(self.text, *args)

    return method


for _name in _READ:
    setattr(Docstring, _name, _reader(_name))


def install(namespace: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Gives the public functions of a module, or those of these `names`, docstrings with sections, and so the
    methods of its classes."""
    for name in names or namespace.get("__all__") or list(namespace):
        found = namespace[name]
        if name[0] == "_" or not str(getattr(found, "__module__", "")).startswith("pyarray"):
            continue
        if isinstance(found, types.FunctionType):
            _set(found, 0)
        elif isinstance(found, type):
            for method in vars(found).values():
                inner = getattr(method, "__func__", method)
                if isinstance(inner, types.FunctionType) and inner.__name__[0] != "_":
                    _set(inner, int(not isinstance(method, staticmethod)))


def _set(function: types.FunctionType, skip: int) -> None:
    doc = function.__doc__
    if doc is not None and type(doc) is str:
        function.__doc__ = Docstring(doc, function, skip)


def _assembled(prose: str, function: Any, skip: int) -> str:
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C without one
        return prose
    at = re.search(_EXAMPLES, prose)
    body, examples = (prose[: at.start()], prose[at.start() :]) if at else (prose, "")
    raised, body = _raised(body)
    sections = {
        "Parameters": list(_parameters(function, list(signature.parameters.values())[skip:])),
        "Returns": _returned(function, signature),
        "Raises": raised,
        "Examples": [examples] if examples else [],
    }
    parts = [body.strip()]
    for title, lines in sections.items():
        if f"\n{title}\n---" not in body and (lines or title == "Parameters"):
            parts.append("\n".join([title, "-" * len(title), *(lines or ["None"])]))
    return "\n\n".join(parts)


def _raised(body: str) -> tuple[list[str], str]:
    """Lines of the section of errors, and the text without the sentence that they come from."""
    match = re.search(_RAISES, body)
    if match is None:
        return [], body
    sentence = " ".join(match[1].split())
    names: list[str] = []
    lines = []
    errors = list(re.finditer(_ERROR, sentence))
    for error, following in zip(errors, [*errors[1:], None], strict=True):
        said = sentence[error.end() : following.start() if following else None]
        names.append(error[1])
        said = re.sub(r"(^[\s,]+)|((,|;| and| or|, and|\s)+$)", "", said)
        if said not in ("", "and", "or"):
            lines += [line for name in names for line in (name, f"    {said[0].upper()}{said[1:]}.")]
            names = []
    if not errors:
        return [], body
    lines += names
    return lines, re.sub(r"[ \t]*\n?[ \t]*\Z", "", body[: match.start()]) + body[match.end() :]


def _parameters(function: Any, parameters: list[inspect.Parameter]) -> Iterator[str]:
    for p in parameters:
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if p.annotation is p.empty else f" : {_shown(p.annotation)}"
        default = "" if p.default is p.empty else f", default {_shown_value(p.default)}"
        yield f"{star}{p.name}{kind}{default}"
        if said := _description(function, p.name):
            yield f"    {said}"


def _shown(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _shown_value(value: Any) -> str:
    return getattr(value, "__name__", None) or getattr(value, "name", None) or repr(value)


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    import tomllib  # which takes longer than all else here

    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _description(function: Any, name: str) -> str | None:
    table = _table()
    path = function.__qualname__
    for where in (f"{path}.{name}", f"{function.__name__}.{name}"):
        if where in table["of"]:
            return table["of"][where]
    namespace = table.get((f"{function.__module__}..").split(".")[1], {})
    return namespace.get(name) or table["parameters"].get(name)


def _returned(function: Any, signature: inspect.Signature) -> list[str]:
    """The type of the result, and its shape where the parameters say it."""
    annotation = signature.return_annotation
    kind = "Any" if annotation is signature.empty else _shown(annotation)
    has, texts = set(signature.parameters), _table()["returns"]
    if kind != "ndarray":
        said = None
    elif hasattr(function, "__pyarray_builtin__") or hasattr(function, "__pyarray_func__"):
        said = texts["ufunc"]
    elif {"axis", "keepdims"} <= has:
        said = texts["reduction"]
    elif {"size", "device"} <= has:
        said = texts["variates"]
    elif {"x", "shape", "dtype"} <= has:
        said = texts["shaped_like"]
    elif {"shape", "dtype", "device"} <= has:
        said = texts["made"]
    else:
        said = texts["written"] if "out" in has else None
    return [kind, f"    {said}"] if said else [kind]
