"""The sections of docstrings: parameters and results from the signature and from `docstring_sections.toml`, which
describes each parameter's name once; errors from the sentence of the prose that begins with "Raises".
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_EXAMPLES = r"(?m)^>>> "
_IMPORT = "import pyarray as pa"  # of the examples that need it: no docstring writes it out
_RAISES = r"(?s)(?:(?<=\s)|^)Raises (`\w+`.*?)\.(?=\s|$)"
_WHEN = r"(?:for|when|where|unless|if|over|beyond|outside|without|with|on|in|of|as)\b[^;]*$"
_ERROR = r"`([\w.]*(?:Error|Exception|Exhausted|Interrupt))`"


def assembled(prose: str, function: Any, skip: int) -> str:
    """The docstring `prose` of a function, and sections: what is written there stays. The first `skip` parameters are
    not in them."""
    prose = inspect.cleandoc(prose)
    if re.search(rf"{_EXAMPLES}.*\bpa\.", prose) and "pyarray as pa" not in prose:
        prose = re.sub(_EXAMPLES, f">>> {_IMPORT}\n>>> ", prose, count=1)
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C without one
        return prose
    at = None if "\nExamples\n---" in prose else re.search(_EXAMPLES, prose)
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
        if lines and f"\n{title}\n---" not in body:
            parts.append("\n".join([title, "-" * len(title), *lines]))
    return "\n\n".join(parts)


def _raised(body: str) -> tuple[list[str], str]:
    """Lines of the section of errors, and the text without the sentence that they come from; with it where the
    sentence says more than when each error is raised."""
    match = re.search(_RAISES, body)
    if match is None:
        return [], body
    sentence = " ".join(match[1].split())
    errors = list(re.finditer(_ERROR, sentence))
    ends = [*(error.start() for error in errors[1:]), len(sentence)]
    lines: list[str] = []
    names: list[str] = []
    for error, end in zip(errors, ends, strict=True):
        when = re.sub(r"^[\s,]+|(?:\s*[,;])?(?: and| or)?\s*$", "", sentence[error.end() : end])
        names.append(error[1])
        if when and not re.match(_WHEN, when):
            return [e[1] for e in errors], body
        if when:
            lines += [line for name in names for line in (name, *_wrapped(f"{when[0].upper()}{when[1:]}."))]
            names = []
    return lines + names, body[: match.start()].rstrip(" ") + body[match.end() :]


def _parameters(function: Any, parameters: list[inspect.Parameter]) -> Iterator[str]:
    for p in parameters:
        star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        kind = "" if p.annotation is p.empty else f" : {_shown(p.annotation)}"
        shown = getattr(p.default, "__name__", None) or getattr(p.default, "name", None) or repr(p.default)
        default = "" if p.default is p.empty else f", default {shown}"
        yield f"{star}{p.name}{kind}{default}"
        if text := description(function, p):
            yield from _wrapped(text)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=" " * 4, subsequent_indent=" " * 4, break_on_hyphens=False)


def _shown(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


@functools.cache
def table() -> dict[str, dict[str, str]]:
    """Texts of `docstring_sections.toml`."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def description(function: Any, parameter: inspect.Parameter) -> str | None:
    """What the table says of a parameter."""
    texts, name = table(), parameter.name
    namespace = texts.get(f"{function.__module__}..".split(".")[1], {})
    if text := texts["of"].get(f"{function.__name__}.{name}") or namespace.get(name):
        return text
    if name == "axis" and str(parameter.annotation).startswith("int"):
        name = "axis_or_flat" if parameter.default is None else "axis_alone"
    return texts["parameters"].get(name)


def _returned(function: Any, signature: inspect.Signature) -> list[str]:
    """The type of the result, and its shape where the parameters say it."""
    annotation = signature.return_annotation
    kind = "Any" if annotation is signature.empty else _shown(annotation)
    has, texts = set(signature.parameters), table()["returns"]
    if kind != "ndarray":
        text = None
    elif hasattr(function, "__pyarray_builtin__") or hasattr(function, "__pyarray_func__"):
        text = texts["ufunc"]
    elif {"axis", "keepdims"} <= has:
        text = texts["reduction"]
    elif {"size", "device"} <= has:
        text = texts["variates"]
    elif {"x", "shape", "dtype"} <= has:
        text = texts["shaped_like"]
    elif {"shape", "dtype", "device"} <= has:
        text = texts["made"]
    else:
        text = texts["written"] if "out" in has else None
    return [kind, *_wrapped(text)] if text else [kind]
