"""Variants of tests that take turns."""

import itertools

import pytest
from variants_by_turn import TURNS, dimensions, due_variants


def of_counts(counts):
    names = "abcd"[: len(counts)]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*map(range, counts))]


def due(function, variants, turn):
    return [v for v, is_due in zip(variants, due_variants(function, variants, turn), strict=True) if is_due]


@pytest.mark.parametrize("counts", [(1,), (2,), (7,), (2, 2), (2, 5), (3, 3), (2, 3, 2), (7, 2, 2), (2, 13), (9, 4)])
def test_each_test_runs_every_day_and_each_variant_within_the_turns(counts):
    variants = of_counts(counts)
    days = [due("tests/api/test_this.py::test_that", variants, turn) for turn in range(20000, 20000 + TURNS)]
    parts = min(TURNS, 1 + sum(count - 1 for count in counts))
    assert all(len(variants) // (2 * parts) <= len(day) <= -(-len(variants) // parts) + 1 for day in days)
    assert all(days)
    assert {tuple(v.items()) for day in days for v in day} == {tuple(v.items()) for v in variants}


def test_a_day_has_each_device_for_some_tests():
    variants = of_counts((2,))
    chosen = [due(f"tests/device/test_this.py::test_{k}", variants, 3) for k in range(100)]
    assert all(len(day) == 1 for day in chosen)
    assert 30 < sum(day == variants[:1] for day in chosen) < 70


def test_a_day_has_one_where_the_sum_gives_none():
    variants = [{"a": 0, "b": 0}, {"a": 4, "b": 4}, {"a": 1, "b": 8}, {"a": 2, "b": 3}]
    for turn in range(8):
        assert len(due("tests/api/test_this.py::test_that", variants, turn)) >= 1


@pytest.mark.parametrize("counts", [(), (2,), (7,), (2, 5)])
def test_a_slow_test_runs_on_one_day_of_some_and_so_does_each_of_its_variants(counts):
    variants = of_counts(counts)
    days = [due_variants("tests/interop/test_this.py::test_that", variants, turn, slow=True) for turn in range(16)]
    for variant in range(len(variants)):
        due = [turn for turn, day in enumerate(days) if day[variant]]
        assert due == list(range(due[0], 16, TURNS))
    assert len({day.index(True) for day in days if any(day)}) == min(TURNS, len({sum(v.values()) for v in variants}))


def test_names_that_vary_together_are_one_dimension():
    rows = [{"key": k, "message": k, "device": d, "only": 0} for k in range(3) for d in range(2)]
    assert dimensions(rows) == ["message", "device"]
    assert dimensions([{"device": 0}]) == dimensions([{}]) == []
