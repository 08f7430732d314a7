"""Every instruction of AMD's tables is translated to C++, but for some that no compiler makes for our targets, or that
no kernel has been seen to use. Nothing is compiled here."""

import re

import pytest

from . import operations
from .harness import needs_toolchain
from .tables import TARGETS, Tables

pytestmark = needs_toolchain
# Names in full. Most of gfx942's are gfx950's, with which it shares its tables.
UNTRANSLATED = {
    "gfx942": r"V_CVT_SCALEF32_\w+|V_CVT_\w*(FP8|BF8)\w*|V_CVT_(PK|SR)_B?F16_F32|V_BITOP3_B\d+|V_(EXP|LOG)_LEGACY_F32|"
    r"V_(PK_)?M(IN|AX)IMUM3_F\d+|V_DIV_FIXUP_LEGACY_F16|V_MAD[MA]K_F16|V_SCREEN_PARTITION_4SE_B32",
    "gfx1100": r"V_DOT4_I32_IU8|V_DOT8_I32_IU4|V_MULLIT_F32",
}


@pytest.mark.parametrize("target", TARGETS)
def test_all_instructions_are_translated(target):
    found, _, functions = operations.rows(Tables(target))
    missing = {row.name: row.unknown for row in found if row.unknown}
    assert {name: why for name, why in missing.items() if not re.fullmatch(UNTRANSLATED[target], name)} == {}
    assert missing, "a table of names that none has is of no use"
    named = {row.function for row in found if row.function}
    assert named == {re.match(r"static void (\w+)\(", text)[1] for text in functions}
    assert len(found) > 1400
