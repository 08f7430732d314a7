"""Combinations of parameters that take turns."""

import itertools

import pytest
from variants_by_turn import is_due


@pytest.mark.parametrize("counts", [(2, 5), (3, 3), (2, 1, 4), (2, 3, 2), (1, 2, 1, 2)])
def test_every_value_is_there_each_day_and_every_combination_in_two(counts):
    combinations = list(itertools.product(*map(range, counts)))
    days = [[c for c in combinations if is_due(c, counts, turn)] for turn in (20000, 20001)]
    assert sorted(days[0] + days[1]) == combinations
    for day in days:
        for parameter, count in enumerate(counts):
            assert {c[parameter] for c in day} == set(range(count))
        assert abs(2 * len(day) - len(combinations)) <= 1


@pytest.mark.parametrize("counts", [(), (1,), (7,), (1, 7)])
def test_values_of_one_parameter_are_all_there(counts):
    assert all(is_due(c, counts, turn) for c in itertools.product(*map(range, counts)) for turn in (0, 1))
