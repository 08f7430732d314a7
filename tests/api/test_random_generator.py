"""Random numbers: the known answers of Philox, the same bits everywhere, state, shapes, errors."""

import math
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.kernels.random import rng as kernels
from pyarray.random import Philox4x3210, default_rng

FEW = examples(40)

# Random123, tests/kat_vectors: counter, key, answer of philox4x32 with 10 rounds
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def numbers(text):
    return [int(word, 16) for word in text.split()]


def philox(counter, key):
    """The generator as its paper writes it, in Python's integers."""
    x, k = list(counter), list(key)
    for _ in range(10):
        a, b = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [b >> 32 ^ x[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ x[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return x


@pa.kernel
def run_philox(out, x, k):
    for i in range(1):  # noqa: B007
        out[0], out[1], out[2], out[3] = kernels.philox(x[0], x[1], x[2], x[3], k[0], k[1])


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter, key, answer, device):
    x, k = (pa.asarray(np.array(numbers(t), np.uint32), device=device) for t in (counter, key))
    out = pa.zeros(4, dtype=pa.uint32, device=device)
    run_philox(out, x, k)
    assert out.tolist() == numbers(answer) == philox(numbers(counter), numbers(key))


def test_words_are_those_of_the_counter(device):
    made = Philox4x3210(3)
    made.state = {"bit_generator": "Philox4x32-10", "key": 5 << 32 | 4, "counter": (1 << 32) - 1, "stream": 9}
    words = default_rng(made).words(8, 32, device=device)
    assert words.tolist() == [*philox([0xFFFFFFFF, 0, 0, 9], [4, 5]), *philox([0, 1, 0, 9], [4, 5])]
    assert made.state["counter"] == (1 << 32) + 1


DRAWS = {
    "random": lambda g, d: g.random(1001, device=d),
    "random32": lambda g, d: g.random(1001, "float32", device=d),
    "normal": lambda g, d: g.normal(3.0, 2.0, 1001, device=d),
    "standard_normal": lambda g, d: g.standard_normal(1001, device=d),
    "normal32": lambda g, d: g.standard_normal(1001, "float32", device=d),
    "exponential": lambda g, d: g.exponential(2.0, 1001, device=d),
    "exponential32": lambda g, d: g.standard_exponential(1001, "float32", device=d),
    "uniform": lambda g, d: g.uniform(-1, 1, 1001, device=d),
    "integers": lambda g, d: g.integers(-5, 3_000_000_000, 1001, device=d),
    "small integers": lambda g, d: g.integers(0, 200, 1001, "uint8", device=d),
    "long integers": lambda g, d: g.integers(-(1 << 62), 1 << 62, 1001, device=d),
    "gamma": lambda g, d: g.gamma(0.5, 2.0, 1001, device=d),
    "beta": lambda g, d: g.beta(0.5, 3.0, 1001, device=d),
    "lognormal": lambda g, d: g.lognormal(1.0, 5.0, 1001, device=d),
    "poisson": lambda g, d: g.poisson(30.0, 1001, device=d),
    "rare poisson": lambda g, d: g.poisson(0.7, 1001, device=d),
    "binomial": lambda g, d: g.binomial(1000, 0.7, 1001, device=d),
    "rare binomial": lambda g, d: g.binomial(20, 0.1, 1001, device=d),
    "permutation": lambda g, d: g.permutation(1001, device=d),
    "choice": lambda g, d: g.choice(5, 1001, p=[0.1, 0.2, 0.3, 0.4, 0.0], device=d),
    "few chosen": lambda g, d: g.choice(2000, 200, False, device=d),
    "chosen once": lambda g, d: g.choice(4, 3, False, [0.1, 0.2, 0.3, 0.4], device=d),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_bits_everywhere(draw, device):
    here, there = (draw(default_rng(11), d).get() for d in ("cpu", device))
    assert here.dtype == there.dtype
    np.testing.assert_array_equal(here.view(np.uint8), there.view(np.uint8))


def test_numbers_that_stay():
    """What a seed gives is part of the contract: a change here breaks users' results."""
    g = default_rng(2026)
    assert g.integers(0, 1000, 4).tolist() == [519, 534, 936, 303]
    assert g.random(2).tolist() == [0.3353514452143469, 0.7854833254607911]
    assert g.standard_normal(2).tolist() == [-1.1651181616507178, -0.6347896783883993]
    assert g.poisson(20.0, 3).tolist() == [25, 15, 16]
    assert g.gamma(2.5, size=2).tolist() == [1.6489588665162453, 0.7581192339006662]
    assert g.beta(0.5, 2.0, 2).tolist() == [0.2971253997295803, 0.0640719864658069]
    assert g.choice(1000, 4, replace=False).tolist() == [329, 627, 10, 514]
    assert default_rng(2026).standard_normal(2, "float32").tolist() == [
        0.24639096856117249,
        1.1171095371246338,
    ]


@FEW
@given(st.lists(st.integers(0, 4), max_size=3), st.sampled_from(["random", "standard_normal", "integers"]))
def test_shapes(shape, name):
    g = default_rng(1)
    args = (7,) if name == "integers" else ()
    x = getattr(g, name)(*args, size=tuple(shape))
    assert x.shape == tuple(shape)
    assert x.flags.c_contiguous
    assert x.base is None
    assert getattr(g, name)(*args).shape == ()
    assert getattr(g, name)(*args, size=3).shape == (3,)


def test_a_short_draw_is_the_start_of_a_long_one():
    for draw in ("random", "standard_normal", "standard_exponential"):
        short, long = (getattr(default_rng(4), draw)(n).tolist() for n in (7, 50))
        assert short == long[:7]


def test_state():
    g = default_rng(5)
    first = g.bit_generator.state
    a = g.random(10).tolist()
    assert g.bit_generator.state != first
    g.bit_generator.state = first
    assert g.random(10).tolist() == a
    copy = pickle.loads(pickle.dumps(g.bit_generator))
    assert default_rng(copy).random(3).tolist() == g.random(3).tolist()
    assert default_rng(g) is g
    assert default_rng(g.bit_generator).bit_generator is g.bit_generator
    with pytest.raises(ValueError, match="Philox4x3210"):
        g.bit_generator.state = {"key": 1}
    with pytest.raises(TypeError, match="default_rng"):
        pa.random.Generator(5)


def test_seeds_streams_and_children_differ():
    g = default_rng(5)
    jumped = default_rng(g.bit_generator.jumped())
    children = [*g.spawn(3), *g.spawn(2), default_rng(6), default_rng([5, 1]), jumped]
    rows = {tuple(child.words(4, 32).tolist()) for child in [g, *children]}
    assert len(rows) == 9
    again = default_rng(5).spawn(3)
    assert again[2].random().item() == default_rng(5).spawn(3)[2].random().item()
    assert default_rng().random().item() != default_rng().random().item()
    seeded = default_rng(np.random.SeedSequence(5))
    assert seeded.random(2).tolist() == default_rng(5).random(2).tolist()


def test_threads_share_a_generator():
    g, found = default_rng(8), []

    def work():
        found.extend(g.words(64).tolist() for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = [x for part in found for x in part]
    assert sorted(words) == sorted(default_rng(8).words(64 * 200).tolist())


@pytest.mark.parametrize("n", [8, 7])
def test_out(n, device):
    expected = default_rng(1).random(n).tolist()
    out = pa.zeros(n, device=device)
    assert default_rng(1).random(out=out) is out
    assert out.tolist() == expected
    wide = pa.zeros(2 * n, device=device)
    default_rng(1).random(n, out=wide[::2])
    assert wide[::2].tolist() == expected
    assert not any(wide[1::2].tolist())
    with pytest.raises(ValueError, match="shape"):
        default_rng(1).random(3, out=out)
    with pytest.raises(TypeError, match="float32"):
        default_rng(1).random(dtype="float32", out=out)
    with pytest.raises(TypeError, match="pyarray array"):
        default_rng(1).standard_normal(out=np.zeros(3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda g: g.random(3, "int32"), TypeError, "float32 or float64"),
        (lambda g: g.random(-1), ValueError, "-1"),
        (lambda g: g.normal(0, -1.0), ValueError, "scale is from 0"),
        (lambda g: g.normal(0, pa.asarray([1.0, -1.0])), ValueError, "scale"),
        (lambda g: g.normal(pa.ones(3), 1.0, size=4), ValueError, r"\(3,\)"),
        (lambda g: g.normal(1j), TypeError, "real"),
        (lambda g: g.integers(5, 5), ValueError, "low must be below high"),
        (lambda g: g.integers(0, 300, dtype="uint8"), ValueError, "out of bounds for uint8"),
        (lambda g: g.integers(0, 3, dtype="float32"), TypeError, "integer"),
        (lambda g: g.integers(0.5, 3), TypeError, "low is an integer"),
        (lambda g: g.integers(pa.asarray([0, 5]), 4), ValueError, "low must be below high"),
        (lambda g: g.gamma(-1.0), ValueError, "shape"),
        (lambda g: g.gamma(2.0, size=5, dtype="int64"), TypeError, "float32 or float64, got int64"),
        (lambda g: g.gamma(math.inf), ValueError, "shape is from 0 to 1.79769e"),
        (lambda g: g.beta(0.0, 1.0), ValueError, "a is more than 0"),
        (lambda g: g.beta(1.0, math.inf), ValueError, "b is more than 0 and finite"),
        (lambda g: g.poisson(float("nan")), ValueError, "lam"),
        (lambda g: g.poisson(-1), ValueError, "lam"),
        (lambda g: g.binomial(3, 1.5), ValueError, "p is from 0 to 1"),
        (lambda g: g.choice(3, 4, replace=False), ValueError, "without replacement"),
        (lambda g: g.choice(3, 2, False, [1.0, 0.0, 0.0]), ValueError, "from 1"),
        (lambda g: g.choice(3, p=[0.5, 0.5]), ValueError, "3 elements"),
        (lambda g: g.choice(2, p=[0.5, 0.6]), ValueError, "sum"),
        (lambda g: g.choice(0), ValueError, "nothing"),
        (lambda g: g.choice([]), ValueError, "nothing"),
        (lambda g: g.shuffle([1, 2]), TypeError, "permutation"),
        (lambda g: g.bytes("3"), TypeError, "integer"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(default_rng(1))


def test_names_of_a_random_state():
    draws = {
        "rand": (2, 3), "randn": (2, 3), "randint": (10, None, 4), "random_sample": (4,),
        "normal": (0.0, 1.0, 4), "random_integers": (2, None, 40), "tomaxint": (4,), "choice": (5, 3),
        "permutation": (5,),
    }  # fmt: skip
    state = pa.random.RandomState(3)
    for name, args in draws.items():
        state.seed(3)
        first = getattr(state, name)(*args)
        assert first.tolist() == getattr(pa.random.RandomState(3), name)(*args).tolist()
        assert len(set(first.ravel().tolist())) > 1
    assert set(state.random_integers(2, size=40).tolist()) == {1, 2}
    assert state.random_sample(3).tolist() != state.random_sample(3).tolist()
    assert pa.random.RandomState(4).rand(3).tolist() == default_rng(4).random(3).tolist()


def test_the_shared_generator():
    functions = {
        "rand": (2, 3), "randn": (2, 3), "randint": (10,), "random": ((2,),), "random_sample": (2,),
        "standard_normal": (2,), "normal": (0.0, 1.0, 2), "uniform": (0.0, 1.0, 2), "exponential": (1.0, 2),
        "permutation": (5,), "choice": (5, 3),
    }  # fmt: skip
    for name, args in functions.items():
        pa.random.seed(3)
        first = getattr(pa.random, name)(*args)
        pa.random.seed(3)
        assert getattr(pa.random, name)(*args).tolist() == first.tolist()
    x = pa.arange(20)
    pa.random.shuffle(x)
    assert sorted(x.tolist()) == list(range(20))
    assert x.tolist() != list(range(20))
