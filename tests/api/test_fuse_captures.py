"""What a fused function has from elsewhere than its arguments: compiled in until it changes, or refused."""

import types

import pytest

import pyarray as pa

SETTINGS = types.SimpleNamespace(one=2.0, items=[2.0], table={"a": {"b": 2.0}}, held=([2.0],), function=None)
WEIGHTS, ROWS = pa.ones(3), [pa.ones(3)]
GENERATOR = pa.random.default_rng(1)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a * SETTINGS.one,
        lambda a: a * SETTINGS.items[0],
        lambda a: a * SETTINGS.items[SETTINGS.items.index(2.0) if 2.0 in SETTINGS.items else 0],
        lambda a: a * sum(SETTINGS.items),
        lambda a: a * SETTINGS.table["a"]["b"],
        lambda a: a * SETTINGS.table.get("a")["b"],
        lambda a: a * SETTINGS.held[0][0],
        lambda a: a * (lambda: SETTINGS.one)(),
        lambda a: SETTINGS.function(a),
    ],
)
def test_captured_attributes_and_items_are_compiled_in_until_they_change(function):
    def change(value):
        SETTINGS.one = SETTINGS.items[0] = SETTINGS.table["a"]["b"] = SETTINGS.held[0][0] = value
        SETTINGS.function = lambda a: a * value

    change(2.0)
    fused, x = pa.fuse(function), pa.ones(3)
    for value in (2.0, 2.0, 5.0):
        if value != 2.0:
            change(value)
        assert fused(x).tolist() == [value] * 3
    assert fused.cache_info()["traces"] == 2


def test_what_is_new_since_the_first_trace_is_guarded_and_explained():
    owner = types.SimpleNamespace()
    fused, x = pa.fuse(lambda x, late: x * owner.late if late else x), pa.ones(3)
    fused(x, False)
    for value in (2.0, 3.0):
        owner.late = value
        assert "multiply" in fused.explain(x, True)
        assert fused(x, True).tolist() == [value] * 3


def test_an_array_that_is_made_inside_is_compiled_in():
    fused = pa.fuse(lambda x: x + pa.asarray([1, 2, 3]) * pa.arange(3) + pa.zeros(3))
    assert [fused(pa.ones(3)).tolist() for _ in range(2)] == [[1, 3, 7]] * 2


def test_reading_captures_runs_nobodys_code():
    calls = []

    class Owner:
        @property
        def factor(self):
            calls.append(1)
            return 2.0

    owner = Owner()
    fused = pa.fuse(lambda x: x * owner.factor)
    assert [fused(pa.ones(3)).tolist() for _ in range(3)] == [[2.0] * 3] * 3
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x + pa.random.rand(3), "draw them outside and pass the array as an argument"),
        (lambda x: x + GENERATOR.permutation(3), "draw them outside and pass"),
        (lambda x: x + WEIGHTS * 2, "of 'WEIGHTS' alone, .* compute it outside"),
        (lambda x: x + pa.cumsum(WEIGHTS[:]), "of 'WEIGHTS' alone, .* compute it outside"),
        (lambda x: x + sum(2 * row for row in ROWS), "of a captured array alone"),
    ],
)
def test_what_may_differ_at_the_next_call_is_refused_with_its_line(function, says):
    fused, before = pa.fuse(function), GENERATOR.bit_generator.state
    for _ in range(2):
        with pytest.raises(pa.CompileError, match=says) as caught:
            fused(pa.ones(3))
        assert (caught.value.path, caught.value.line) == (__file__, function.__code__.co_firstlineno)
    assert GENERATOR.bit_generator.state == before
    assert function(pa.ones(3)).shape == (3,)  # by itself, and afterwards, it may


def test_elements_of_captured_arrays_are_read_at_each_launch():
    weights = pa.asarray([1.0, 2.0, 3.0])
    fused = pa.fuse(lambda x: x * weights[::-1] + weights.reshape(3) * x)
    assert fused(pa.ones(3)).tolist() == [4.0, 4.0, 4.0]
    weights[0] = 10.0
    assert fused(pa.ones(3)).tolist() == [13.0, 4.0, 13.0]
