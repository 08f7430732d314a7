"""Kernels on the executor alone, without the emulated runtime: HIP text in, arrays out."""

import ctypes
import functools
import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from compile_cache import compiler_identity

from pyarray.driver import command_compilers
from pyarray.jit import cache
from pyarray.jit.compile import headers

from . import build, toolchain

MISSING = toolchain.missing()
needs_toolchain = pytest.mark.skipif(bool(MISSING), reason=f"AMD code objects can't be made here: {MISSING}")
HERE = Path(__file__).resolve().parent


class _Range(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint64), ("end", ctypes.c_uint64))


_Live = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(_Range))
_Describe = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64)


class _Launch(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint32),
        ("arguments", ctypes.c_void_p), ("argument_bytes", ctypes.c_size_t), ("backwards", ctypes.c_bool),
        ("context", ctypes.c_void_p), ("live", _Live), ("describe", _Describe), ("error", ctypes.c_char * 1024),
    )  # fmt: skip


class KernelFault(Exception):
    """What the executor says of a launch."""


@functools.cache
def library(target):
    found = ctypes.CDLL(str(build.build(target)))
    found.isa_load.argtypes = found.isa_kernel.argtypes = None
    found.isa_load.restype = found.isa_kernel.restype = ctypes.c_void_p
    found.isa_load.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    found.isa_kernel.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    found.isa_unload.argtypes, found.isa_unload.restype = [ctypes.c_void_p], None
    found.isa_decode.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    found.isa_decode.restype = ctypes.c_uint64
    found.isa_run.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Launch)]
    return found


@functools.cache
def _installed():
    """What decides a code object besides its text and our headers."""
    programs = map(shutil.which, ("clang-19", "ld.lld-19"))
    files = [*programs, *sorted(map(str, toolchain.BITCODE.glob("*.bc")))]
    own, declarations = Path(toolchain.__file__).read_text(), command_compilers._hiprtc_header() or b""
    return " ".join([own, hashlib.sha256(declarations).hexdigest(), *map(compiler_identity, files)])


@functools.cache
def compiled(target, text):
    """The code object of a text, by the product's clang; kept in the tests' kernel cache."""
    rocm = build.BUILT / "rocm"
    toolchain.use(rocm, target)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROCM_PATH", str(rocm))
        clang = command_compilers.HipClang(target)
        key = cache.key_of("AMD code object", clang.fingerprint, _installed(), headers(), text)
        found = cache.find(key)
        if found is None:
            found = clang.compile(text)
            cache.publish(key, found, {"kernel": "AMD code object", "target": target})
        return found


def load(target, image):
    """A code object, loaded; `ValueError` with the executor's words otherwise."""
    words = ctypes.create_string_buffer(1024)
    found = library(target).isa_load(image, len(image), words, len(words))
    if not found:
        raise ValueError(words.value.decode())
    return found


def decoded(target, image):
    """The number of instructions of a code object, and the names of those that it has; `ValueError` with the executor's
    words where one isn't known."""
    code, words = load(target, image), ctypes.create_string_buffer(1 << 16)
    count = library(target).isa_decode(code, words, len(words))
    library(target).isa_unload(code)
    if not count and words.value:  # a code object may have no kernel
        raise ValueError(words.value.decode())
    return count, set(words.value.decode().split())


def kernel_of(target, code, name):
    words = ctypes.create_string_buffer(1024)
    found = library(target).isa_kernel(code, name.encode(), words, len(words))
    if not found:
        raise ValueError(words.value.decode())
    return found


def run(target, text, name, arrays, grid=1, block=64, arguments=None, shared=0, backwards=False):
    """Launches a kernel whose parameter is a struct of pointers to `arrays`, or of `arguments`, uint64 each."""
    kernel = kernel_of(target, load(target, compiled(target, text)), name)
    ranges = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in arrays]
    given = np.array([a.ctypes.data for a in arrays] if arguments is None else arguments, np.uint64)

    def live(_, address, size, found):
        for start, end in ranges:
            if start <= address and address + size <= end:
                found[0].start, found[0].end = start, end
                return True
        return False

    launch = _Launch(shared=shared, arguments=given.ctypes.data, argument_bytes=given.nbytes, backwards=backwards)
    launch.grid[:] = (grid, 1, 1)
    launch.block[:] = (block, 1, 1)
    launch.live, launch.describe = _Live(live), _Describe(lambda _, address: f"address {address:#x}".encode())
    if library(target).isa_run(kernel, ctypes.byref(launch)):
        raise KernelFault(launch.error.decode())
