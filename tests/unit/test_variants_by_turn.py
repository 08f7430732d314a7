"""Combinations of parameters that take turns."""

import itertools

import pytest
from variants_by_turn import dimensions, is_due


@pytest.mark.parametrize("counts", [(2, 5), (3, 3), (2, 4), (2, 3, 2), (7, 2, 2)])
def test_every_value_is_there_each_day_and_every_combination_in_two(counts):
    combinations = list(itertools.product(*map(range, counts)))
    days = [[c for c in combinations if is_due(c, turn)] for turn in (20000, 20001)]
    assert sorted(days[0] + days[1]) == combinations
    for day in days:
        for parameter, count in enumerate(counts):
            assert {c[parameter] for c in day} == set(range(count))
        assert abs(2 * len(day) - len(combinations)) <= 1


@pytest.mark.parametrize("count", [1, 7])
def test_values_of_one_parameter_are_all_there(count):
    assert all(is_due((k,), turn) for k in range(count) for turn in (0, 1))
    assert is_due((), 0)
    assert is_due((), 1)


def test_names_that_vary_together_are_one_dimension():
    rows = [{"key": k, "message": k, "device": d, "only": 0} for k in range(3) for d in range(2)]
    assert dimensions(rows) == ["message", "device"]
    assert dimensions([{"device": 0}]) == dimensions([{}]) == []
