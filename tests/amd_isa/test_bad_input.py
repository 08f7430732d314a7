"""Code objects that aren't: each is refused with words."""

import struct

import pytest

from . import build
from .harness import HERE, compiled, kernel_of, load, needs_toolchain

pytestmark = needs_toolchain
TEXT = (HERE / "bugs.hip").read_text()


@pytest.mark.slow
def test_another_target(target):
    image = bytearray(compiled(target, TEXT))
    image[48] = 0x3F  # the machine, in the header's flags: gfx90a
    with pytest.raises(ValueError, match=f"it is for another target: its machine is 0x3f, and {target} is"):
        load(target, bytes(image))


def test_what_is_no_code_object(target):
    with pytest.raises(ValueError, match="it doesn't begin as an ELF file"):
        load(target, b"#include <hip/hip_runtime.h>" * 10)
    image = bytearray(compiled(target, TEXT))
    image[18:20] = struct.pack("<H", 62)
    with pytest.raises(ValueError, match="of machine 62, not of an AMD GPU"):
        load(target, bytes(image))


def test_a_truncated_one(target):
    image = compiled(target, TEXT)
    for size in range(0, len(image) - 1, 97):
        with pytest.raises(ValueError, match=r"truncated|doesn't begin as an ELF file"):
            load(target, image[:size])


def test_a_kernel_that_is_not_in_it(target):
    code = load(target, compiled(target, TEXT))
    with pytest.raises(ValueError, match=r"it has no kernel sums, but .*copied"):
        kernel_of(target, code, "sums")


def test_an_instruction_that_is_unknown(target):
    image = bytearray(compiled(target, TEXT))
    at = image.index(struct.pack("<I", 0xBF810000 if target == "gfx942" else 0xBFB00000))  # s_endpgm
    image[at : at + 4] = struct.pack("<I", 0xD3FFFFFF if target == "gfx942" else 0xCCFFFFFF)
    code = load(target, bytes(image))
    words = f"no instruction of {target} is encoded as .*ffffff|ffffff. isn't known to the executor"
    names = [word.split("(")[0].split()[-1] for word in TEXT.split("KERNEL ")[2:]]

    def all_kernels():
        for name in names:
            kernel_of(target, code, name)

    with pytest.raises(ValueError, match=words):
        all_kernels()


def test_a_target_without_tables():
    with pytest.raises(ValueError, match="expected one of gfx942, gfx1100 for the executor, got 'gfx906'"):
        build.build("gfx906")
