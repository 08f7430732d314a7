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


def test_an_array_in_a_captured_tuple_is_no_constant(device):
    held = (pa.ones(2, device=device),)

    @pa.fuse
    def f(x):
        return x * pa.sum(held[0])

    with pytest.raises(pa.CompileError, match="computed once"):
        f(pa.ones(2, device=device))


def test_a_slot_without_a_value_and_a_key_that_comes_later(device):
    class Slots:
        __slots__ = ("a", "b")

    held, table = Slots(), {}
    held.a = 2.0

    @pa.fuse
    def f(x, flag):
        return x * held.a if flag else x * held.b

    @pa.fuse
    def g(x):
        try:
            return x * table["k"]
        except KeyError:
            return x

    x = pa.ones(2, device=device)
    assert f(x, True).tolist() == [2, 2]
    held.b = 3.0
    assert f(x, False).tolist() == [3, 3]
    assert g(x).tolist() == [1, 1]
    table["k"] = 4.0
    assert g(x).tolist() == [4, 4]


def test_attributes_beyond_the_reach_of_one_byte(device):
    """Python's instructions have arguments of a byte, and an instruction before those that need more."""
    cfg = types.SimpleNamespace(last=2.0)
    scope = {"cfg": cfg, **{f"n{k}": 0.0 for k in range(600)}}
    names = " + ".join(f"n{k}" for k in range(600))
    exec(f"def f(x):\n    if x is None:\n        return {names}\n    return x * cfg.last\n", scope)
    f = pa.fuse(scope["f"])
    x = pa.ones(2, device=device)
    assert f(x).tolist() == [2, 2]
    cfg.last = 3.0
    assert f(x).tolist() == [3, 3]
