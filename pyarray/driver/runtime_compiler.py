"""Runtime compilation, as NVRTC and hiprtc share it: their calls differ in names only."""

from __future__ import annotations

from typing import Any

from ..errors import CompileError, DeviceError


def call(library: Any, name: str, *args: Any) -> Any:
    """What `name` of the binding `library` returns. Raises `DeviceError` for any code but success."""
    code, *values = getattr(library, name)(*args)
    if int(code):
        raise DeviceError(f"{name} failed: {code}")
    return values[0] if len(values) == 1 else tuple(values)


def compile_program(library: Any, vendor: str, program: Any, options: list[str], target: str, kind: str) -> bytes:
    """The binary of `program` for `target`; the functions' names start with `vendor`, and `kind` is their name for
    a binary ("CUBIN", "Code"). Raises `CompileError` with the compiler's words."""
    words = [option.encode() for option in options]
    (code,) = getattr(library, f"{vendor}CompileProgram")(program, len(words), words)
    if int(code):
        log = _read(library, f"{vendor}GetProgramLog", program).rstrip(b"\0").decode(errors="replace")
        raise CompileError(f"{vendor} refused the kernel for {target}:\n{log}")
    return _read(library, f"{vendor}Get{kind}", program)


def _read(library: Any, name: str, program: Any) -> bytes:
    """The output of a call, whose size another call says."""
    buffer = bytearray(call(library, f"{name}Size", program))
    call(library, name, program, buffer)
    return bytes(buffer)
