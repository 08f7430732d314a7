"""Calls that don't fit a kernel's parameters: kernels, saved ones and tuned ones say the same."""

import re

import pytest

import pyarray as pa


@pa.kernel
def weighed(v, factor, count: pa.int64, unused: pa.float32, *, b: pa.constexpr = 1, shift: float):
    for i in range(v.size):
        v[i] = v[i] * factor * b + count + shift


RIGHT = {"factor": 2.0, "count": 1, "unused": 1, "shift": 0.5}


def without(*names, **more):
    return {name: value for name, value in (RIGHT | more).items() if name not in names}


WRONG = [  # the arguments beside the array, and what is said
    (without("factor", facter=2.0), "has no keyword 'facter'; did you mean 'factor'? It takes"),
    (without("count", cuont=1), "has no keyword 'cuont'; did you mean 'count'? It takes"),
    (without("unused", unusde=1), "has no keyword 'unusde'; did you mean 'unused'? It takes"),
    (without("shift", shfit=0.5), "has no keyword 'shfit'; did you mean 'shift'? It takes"),
    (without(bb=2), "has no keyword 'bb'; did you mean 'b'? It takes"),
    (without("factor"), "missing 1 required positional argument: 'factor'"),
    (without("count"), "missing 1 required positional argument: 'count'"),
    (without("unused"), "missing 1 required positional argument: 'unused'"),
    (without("shift"), "missing 1 required keyword-only argument: 'shift'"),
    (without("factor", "count"), "missing 2 required positional arguments: 'factor' and 'count'"),
    (without(v=1), "got multiple values for argument 'v'"),
]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("form", ["kernel", "saved", "tuned", "tuned, zeroed"])
def test_wrong_calls_are_told_alike(device, form, debug, tmp_path):
    again, v = pa.kernel(weighed.__wrapped__), pa.ones(2, device=device)
    expected = [1.0]
    if form == "saved":
        with pa.debug(debug):
            again(pa.ones(2, device=device), **RIGHT)
        again.save(tmp_path / "weighed")
        again = pa.load_kernel(tmp_path / "weighed")
    elif form != "kernel":
        options = {"reset_to_zero": ["v"]} if "zeroed" in form else {}
        again = pa.autotune([pa.Config(b=1)], [], **options)(again)
    with pa.debug(debug):
        for _ in range(2):  # before the first call that fits and after it: then others look at the arguments
            for given, message in WRONG:
                with pytest.raises(TypeError, match=rf"^weighed\(\) {re.escape(message)}"):
                    again(v, **given)
            with pytest.raises(TypeError, match=r"^weighed\(\) takes 4 positional arguments but 5 "):
                again(v, 2.0, 1, 1, 7, shift=0.5)
            for _ in range(2):
                assert v.tolist() == expected * 2
                again(v, **RIGHT)
                again(v, 2.0, 1, unused=2, shift=0.5)
                expected = [1.5] if "zeroed" in form else [4 * expected[0] + 4.5]
    assert v.tolist() == expected * 2
