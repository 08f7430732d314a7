"""Launch plans as text: what stands in saved kernels, dumps and names of artifacts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyarray.driver.kernel_step import MOST_GUARDS, MOST_SIZES, Guard, KernelStep, format_steps, parse_steps

NUMBERS = st.integers(0, 1 << 20)
SIZES = st.none() | st.lists(NUMBERS, max_size=MOST_SIZES).map(tuple)
ROWS = st.just((None, 0)) | st.tuples(NUMBERS, NUMBERS)
SYMBOLS = st.from_regex(r"[a-z_][a-z_0-9]*", fullmatch=True)
THREADS = st.integers(1, 32).map(lambda warps: 32 * warps)
PLAIN = st.builds(
    KernelStep,
    SYMBOLS,
    SIZES,
    st.integers(1, 64),
    shared=NUMBERS,
    threads=THREADS,
    fallback=st.booleans(),
    shared_most=NUMBERS,
    dependent_launch=st.booleans(),
)
TEAMS = st.builds(lambda symbol, sizes, row: KernelStep(symbol, sizes, 1, True, *row), SYMBOLS, SIZES, ROWS)
SINGLE = st.builds(KernelStep, SYMBOLS, single=st.just(True))
GUARDS = st.lists(st.builds(Guard, NUMBERS, st.integers(-1, 15), NUMBERS, NUMBERS), min_size=1, max_size=MOST_GUARDS)
GUARDED = st.builds(replace, TEAMS, guards=GUARDS.map(tuple), row_bytes=NUMBERS)


@given(st.lists(PLAIN | TEAMS | SINGLE | GUARDED).map(tuple))
def test_steps_are_read_as_they_were_written(steps):
    assert parse_steps(format_steps(steps)) == steps


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("kernel_add", [KernelStep("kernel_add")]),
        ("kernel_add_0=1,2x4", [KernelStep("kernel_add_0", (1, 2), 4)]),
        ("kernel_matmul=*@98304", [KernelStep("kernel_matmul", None, shared=98304)]),
        (
            "k_once0=.;k_0=*b3:4096",
            [KernelStep("k_once0", single=True), KernelStep("k_0", None, 1, True, 3, 4096)],
        ),
        ("k_0=1x4t64@8", [KernelStep("k_0", (1,), 4, shared=8, threads=64)]),
        (
            "k_0=*bt128@65536~131072",
            [KernelStep("k_0", None, team=True, shared=65536, threads=128, shared_most=131072)],
        ),
        ("rows=1b", [KernelStep("rows", (1,), team=True)]),
        ("k_0=1;k_checked0=!*", [KernelStep("k_0", (1,)), KernelStep("k_checked0", None, fallback=True)]),
        ("", []),
    ],
)
def test_texts_of_earlier_releases(text, steps):
    """Saved kernels and dumps hold them, and they are part of artifacts' names."""
    assert list(parse_steps(text)) == steps
    assert format_steps(steps) == text


def test_a_text_that_is_none():
    with pytest.raises(ValueError, match=r"'kernel_add_0=one' .* expected symbol=slots .* save it anew"):
        parse_steps("kernel_add_0=one")
    with pytest.raises(ValueError, match=r"'rows=1b2:4096\?8&0:15' .* save it anew"):
        parse_steps("rows=1b2:4096?8&0:15")
