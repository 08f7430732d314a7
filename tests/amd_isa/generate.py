"""The C++ that is generated for a target."""

from __future__ import annotations

from . import decoder, operations
from .tables import TARGETS, Tables


def two_over_pi() -> list[int]:
    """1201 bits of 2/pi behind the point, in words of 64, the highest first, and zeros behind them."""
    bits, guard = 1201, 64
    one = 1 << (bits + guard)

    def arctangent(inverse: int) -> int:
        term, total, n = one // inverse, 0, 1
        while term:
            total += term // n if n % 4 == 1 else -(term // n)
            term //= inverse * inverse
            n += 2
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    value = (2 * one * one // pi) >> guard
    value <<= 2048 - bits
    return [value >> shift & (1 << 64) - 1 for shift in range(1984, -1, -64)]


def fields_header() -> str:
    return decoder.fields_header([Tables(target) for target in TARGETS])


def source(target: str) -> str:
    """Operations, the tables of operations and encodings, constants."""
    tables = Tables(target)
    found, numbers, functions = operations.rows(tables)
    words = ", ".join(f"{word:#x}ull" for word in two_over_pi())
    parts = [
        '#include "isa_tables.h"', '#include "isa_math.h"', f'extern const char *const target_name = "{target}";',
        f"extern const bool is_cdna = {'true' if tables.is_cdna else 'false'};",
        f"extern const uint64_t two_over_pi_bits[] = {{{words}}};",
        *functions, operations.table(found), decoder.tables_source(tables, numbers),
    ]  # fmt: skip
    return "\n".join(parts) + "\n"
