"""The tables of AMD's instructions, as tinygrad's wheel has them: encodings, operands, pseudocode.

The tables for RDNA 3 serve gfx1100. Those for CDNA are CDNA 4's (gfx950) with what CDNA 3 has beyond it; what gfx950
added is no instruction of gfx942, whose compiler doesn't make it.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .corrections import plain

TARGETS = {"gfx942": "cdna", "gfx1100": "rdna3"}
VERSION = "0.14.0"  # of the package: pyproject.toml pins it


@dataclass(frozen=True)
class Tables:
    """What the package knows of a `target`."""

    target: str

    @property
    def folder(self) -> str:
        return TARGETS[self.target]

    @property
    def is_cdna(self) -> bool:
        return self.folder == "cdna"

    def module(self, name: str) -> Any:
        return importlib.import_module(f"tinygrad.runtime.autogen.amd.{self.folder}.{name}")

    @cached_property
    def pseudocode(self) -> dict[Any, str]:
        return self.module("str_pcode").PCODE

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {plain(op.name): text for op, text in self.pseudocode.items()}

    def pseudocode_of(self, member: Any, name: str) -> str:
        """Of the member, or of the same instruction in another encoding; '' where there is none."""
        return self.pseudocode.get(member) or self._by_name.get(name, "")

    @cached_property
    def operands(self) -> dict[Any, dict[str, tuple[Any, int, Any]]]:
        return self.module("operands").OPERANDS

    @cached_property
    def encodings(self) -> list[Any]:
        """Classes of instructions, in the order in which they are tried; those that follow from one of them by its
        operands come with their names only."""
        found = list(importlib.import_module("tinygrad.renderer.amd")._load_formats()[self.folder])
        buffers = self.module("ins").MUBUF  # which the package doesn't try for RDNA 3
        return found if buffers in found else [*found, buffers]

    def opcodes(self, encoding: Any) -> dict[int, Any]:
        """Members of the encoding's enumeration by number."""
        for name, field in encoding._fields:
            if name in ("op", "opx"):
                allowed = field.allowed
                return {op.value: op for op in field._enum if allowed is None or op in allowed}
        return {}
