"""The pages of the public namespaces, made while mkdocs builds the site: they are in no folder.

mkdocs calls `on_config` and `on_files`: a page for each chapter of the API, with a directive of mkdocstrings
for each name. griffe, which reads the package for mkdocstrings, loads `RuntimeMembers`.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import make_reference

import pyarray as pa

NAMESPACES = (pa.linalg, pa.fft, pa.nn, pa.random, pa.special, pa.quaternion, pa.lib.stride_tricks, pa.testing)
# what imports torch, which the site's environment need not have: read from its text
STATIC = {"pyarray.torch": ("op", "explain", "Explanation", "attention")}
FOLDER = "reference/api"


def is_documented(thing: Any) -> bool:
    """Whether a name has an entry: NumPy's types and plain numbers are in the tables of the reference."""
    module = getattr(thing, "__module__", None) or type(thing).__module__
    return not isinstance(thing, types.ModuleType) and module.partition(".")[0] == "pyarray"


def pages() -> Iterator[tuple[str, str, list[str]]]:
    """(name of the page's file, its title, paths of what it describes)"""
    further = [n for n in make_reference.FURTHER if is_documented(getattr(pa, n))]
    yield "arrays", "Arrays, kernels and devices", [f"pyarray.{n}" for n in further]
    seen = set(further)  # some names are in two chapters
    for module, title, names in make_reference.chapters():
        names = [n for n in names if is_documented(getattr(pa, n)) and n not in seen]
        seen.update(names)
        if names:
            yield module.rpartition(".")[2], title, [f"pyarray.{n}" for n in names]
    for module in NAMESPACES:
        names = [n for n in sorted(module.__all__) if is_documented(getattr(module, n))]
        yield module.__name__, f"`{module.__name__}`", [f"{module.__name__}.{n}" for n in names]
    for path, names in STATIC.items():
        yield path, f"`{path}`", [f"{path}.{n}" for n in names]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation ends its part of the reference with the pages that are made here."""
    [reference] = [part["Reference"] for part in config.nav or () if "Reference" in part]
    reference.append({"API": [{title.strip("`"): f"{FOLDER}/{name}.md"} for name, title, _ in pages()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, title, paths in pages():
        text = "\n\n".join([f"# {title}", *(f"::: {path}" for path in paths)])
        files.append(File.generated(config, f"{FOLDER}/{name}.md", content=text + "\n"))
    return files


class _Inspector(griffe.Inspector):
    """Describes objects as they are, wherever they were defined."""

    def generic_inspect(self, node: griffe.ObjectNode) -> None:
        for child in node.children:
            if child.name == "__init__" or not (child.name.startswith("_") or child.is_module):
                self.inspect(child)


class RuntimeMembers(griffe.Extension):
    """Most functions are rows of tables, which become functions when the package is imported: the text of the
    package doesn't show them."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        for path, names in STATIC.items():
            target = pkg[path.partition(".")[2]]
            members = {n: target.members[n] for n in names}
            for name, member in members.items():
                if member.is_alias:
                    members[name] = member.final_target
                elif member.is_module:  # a function of the name of its module, which the import replaces
                    members[name] = member.members[name]
            for name, member in members.items():
                target.set_member(name, member)
                _tidy(member)
        for module in (pa, *NAMESPACES):
            target = pkg[module.__name__.partition(".")[2]] if module is not pa else pkg
            for name in [n for n, m in target.members.items() if m.is_alias]:
                target.del_member(name)  # what `from ... import` brought: its place is not public
            inspector = _Inspector(
                module.__name__,
                None,
                griffe.Extensions(),
                docstring_parser=loader.docstring_parser,
                docstring_options=loader.docstring_options,
            )
            for name, thing in dict(vars(module)).items():
                if is_documented(thing) and (not name.startswith("_") or name == "__array_namespace_info__"):
                    inspector.current = target
                    inspector.inspect(griffe.ObjectNode(thing, name))
                    _tidy(target.members[name])


def _tidy(member: griffe.Object) -> None:
    """Examples of a docstring are a section, and a call before its first sentence goes, as it is the heading.
    Values of attributes go: they are objects, whose `repr` says nothing."""
    if member.is_attribute:
        member.value = None
    if member.docstring is not None:
        text = re.sub(rf"^{re.escape(member.name)}\([^)]*\): ", "", member.docstring.value)
        if "\nExamples\n---" not in text:
            text = re.sub(r"(?m)^>>> ", r"Examples\n--------\n>>> ", text, count=1)
        member.docstring.value = text
    for child in member.members.values():
        _tidy(child)
