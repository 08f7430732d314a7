"""`Generator`: the distributions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import shapes
from ..api.standard.elementwise import multiply
from ..api.standard.indexing import take, take_along_axis
from ..api.standard.manipulation import concat
from ..api.standard.searching import searchsorted
from ..api.standard.sorting import argsort
from ..array import empty, ndarray
from ..array_convert import asarray, asnumpy
from ..driver.base import get_device
from ..dtypes import DType, asdtype, float32, float64, int64, uint64
from ..kernels.random import rng, variates
from ..kernels.random.distributions import VARIATES
from ..kernels.random.gamma_variates import fill_beta, fill_gamma
from ..typing import ArrayLike, DeviceLike, DTypeLike, ShapeLike
from . import further, operands
from .bit_generator import Philox4x3210
from .without_replacement import MIN_RATIO, first_few

_FILLS: dict[str, Callable[..., None]] = {"gamma": fill_gamma, "beta": fill_beta}


def default_rng(seed: Any = None) -> Generator:
    """A new `Generator`. `seed` is as for `Philox4x3210`; a `Philox4x3210` is used as it is, and a
    `Generator` given back.

    >>> default_rng(1).random(2).shape
    (2,)
    """
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, Philox4x3210) else Philox4x3210(seed))


class Generator:
    """Variates of many distributions, as NumPy's `Generator`. `size` is a shape, None for a 0-d array (or the
    shape of the parameters); `device` is where the result is, the default one unless parameters are arrays.

    Methods raise `ValueError` for parameters outside the distribution's range and for sizes that don't fit,
    `TypeError` for other dtypes than they say.
    """

    _has_ordered_bounds = True  # of `uniform`

    def __init__(self, bit_generator: Philox4x3210):
        if not isinstance(bit_generator, Philox4x3210):
            what = f"Generator takes a Philox4x3210, got {type(bit_generator).__name__}"
            raise TypeError(f"{what}; write pyarray.random.default_rng(seed)")
        self.bit_generator = bit_generator

    def __repr__(self) -> str:
        return f"Generator(Philox4x32-10) at counter {self.bit_generator.state['counter']}"

    def spawn(self, count: int) -> list[Generator]:
        """`count` new generators, independent of this one and of each other.

        >>> len(default_rng(1).spawn(3))
        3
        """
        return [Generator(child) for child in self.bit_generator.spawn(count)]

    # ---- what is made of words

    def random(
        self, size: ShapeLike | None = None, dtype: DTypeLike = float64, out: ndarray | None = None, *,
        device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Uniform variates in [0, 1): multiples of 2**-53, of 2**-24 for float32.

        >>> default_rng(1).random(3, dtype="float32").dtype
        dtype('float32')
        """
        return self._drawn("uniform", size, dtype, out, device, 0.0, 1.0)

    def uniform(
        self, low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: ShapeLike | None = None,
        dtype: DTypeLike = float64, *, device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Uniform variates from `low` up to `high`, which rounding may reach. Raises `ValueError` where `high - low`
        isn't finite, and where it is negative; but a `RandomState` takes bounds in any order.

        >>> bool(pa.all(default_rng(1).uniform(2, 3, 100) >= 2))
        True
        """
        first, last = operands.parameters("uniform", low=low, high=high)
        width = last - first
        distance = width if self._has_ordered_bounds else abs(width)
        operands.parameters("uniform", **{"high - low_finite": distance})
        return self._drawn("uniform", size, dtype, None, device, first, width)

    def standard_normal(
        self, size: ShapeLike | None = None, dtype: DTypeLike = float64, out: ndarray | None = None, *,
        device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Normal variates of mean 0 and standard deviation 1, by the method of Box and Muller (float32: of
        64 bits a pair, up to 6.66 either way; float64: of 106 bits a pair, up to 8.49).

        >>> default_rng(1).standard_normal((2, 3)).shape
        (2, 3)
        """
        return self._drawn("normal", size, dtype, out, device, 0.0, 1.0)

    def normal(
        self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: ShapeLike | None = None,
        dtype: DTypeLike = float64, *, device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Normal variates of mean `loc` and standard deviation `scale`, 0 or more.

        >>> default_rng(1).normal(5.0, 0.0).item()
        5.0
        """
        loc, scale = operands.parameters("normal", loc=loc, scale_0=scale)
        return self._drawn("normal", size, dtype, None, device, loc, scale)

    def standard_exponential(
        self, size: ShapeLike | None = None, dtype: DTypeLike = float64, out: ndarray | None = None, *,
        device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Exponential variates of mean 1.

        >>> bool(default_rng(1).standard_exponential() > 0)
        True
        """
        return self._drawn("exponential", size, dtype, out, device, 0.0, 1.0)

    def exponential(
        self, scale: ArrayLike = 1.0, size: ShapeLike | None = None, dtype: DTypeLike = float64, *,
        device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Exponential variates of mean `scale`, 0 or more.

        >>> default_rng(1).exponential(0.0).item()
        0.0
        """
        (scale,) = operands.parameters("exponential", scale_0=scale)
        return self._drawn("exponential", size, dtype, None, device, 0.0, scale)

    def bytes(self, length: int) -> bytes:
        """`length` random bytes of the host.

        >>> len(default_rng(1).bytes(5))
        5
        """
        words = self.words(-(-operator.index(length) // 4), 32, device="cpu")
        return asnumpy(words).tobytes()[:length]

    def words(self, size: ShapeLike, width: int = 64, *, device: DeviceLike = None) -> ndarray:
        """Random bits: uint32 or uint64, as `width` is 32 or 64.

        >>> default_rng(1).words(2, 32).dtype
        dtype('uint32')
        """
        return self._drawn("words", size, f"uint{width}", None, device, 0.0, 1.0)

    def _drawn(self, kind: str, size: Any, dtype: Any, out: Any, device: Any, shift: Any, scale: Any) -> ndarray:
        row = asdtype(dtype)
        if kind != "words" and row not in (float32, float64):
            raise TypeError(f"{kind} variates are float32 or float64, got {row}; cast them with astype")
        arrays = [x for x in (shift, scale) if isinstance(x, ndarray)]
        if arrays:
            shape, state = operands.common(kind, size, device, arrays)
            result = self._drawn(kind, shape, row, None, state, 0.0, 1.0)
            result *= operands.cast(scale, row)
            result += operands.cast(shift, row)
            return result
        count = rng.CONVERSIONS[kind, 8 * row.itemsize].per_block
        result, padded = operands.target(size, row, out, device, count)
        if padded.size:
            state = self.bit_generator.reserve(padded.size // count)
            rng.fill(kind, padded, state, shift, scale)
        return operands.store_out(result, out)

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: ShapeLike | None = None,
        dtype: DTypeLike = int64, endpoint: bool = False, *, device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Integers from `low` up to, but without, `high` (with it if `endpoint`), all equally likely; from 0
        up to `low` where only that is given. dtype is an integer one or bool. Bounds may be arrays.

        >>> sorted(set(default_rng(1).integers(3, size=100).tolist()))
        [0, 1, 2]
        """
        if high is None:
            low, high = 0, low
        row = asdtype(dtype)
        if row.kind not in "biu":
            raise TypeError(f"integers(): dtype is an integer one or bool, got {row}")
        arrays = [x for x in (low, high) if not operands.is_number(x)]
        if arrays:
            return operands.integers_between(self.bit_generator, low, high, size, row, endpoint, device)
        first = operands.integer_parameter("integers", "low", low)
        last = operands.integer_parameter("integers", "high", high) - (not endpoint)
        operands.check_bounds(first, last, row)
        words = last - first < 1 << 32
        result, padded = operands.target(size, row, None, device, 4 if words else 1)
        if padded.size and words:
            state = self.bit_generator.reserve(padded.size // 4)
            variates.fill_words(padded, state, first, last - first + 1)
        elif padded.size:
            state = self.bit_generator.reserve(padded.size)
            limits = (asarray([n % (1 << 64)], uint64, device=padded.device) for n in (first, last - first))
            variates.fill_between(padded, state, *limits)
        return result

    # ---- what is tried again

    def gamma(
        self, shape: ArrayLike, scale: ArrayLike = 1.0, size: ShapeLike | None = None,
        dtype: DTypeLike = float64, *, device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Gamma variates of this `shape`, which is finite, and `scale`, both 0 or more.

        >>> default_rng(1).gamma(2.0, size=3).shape
        (3,)
        """
        arguments = operands.parameters("gamma", shape_finite=shape, scale_0=scale)
        return self._variates("gamma", size, dtype, device, arguments)

    def standard_gamma(
        self, shape: ArrayLike, size: ShapeLike | None = None, dtype: DTypeLike = float64, *,
        device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """`gamma` of scale 1."""
        return self.gamma(shape, 1.0, size, dtype, device=device)

    def chisquare(self, df: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
        """Sums of the squares of `df` (more than 0) standard normal variates.

        >>> default_rng(1).chisquare(3, size=2).shape
        (2,)
        """
        (degrees,) = operands.parameters("chisquare", df_positive=df)
        return self.gamma(degrees * 0.5, 2.0, size, device=device)

    def beta(self, a: ArrayLike, b: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
        """Beta variates, in [0, 1]; `a` and `b` are more than 0.

        >>> default_rng(1).beta(2.0, 3.0, size=(2, 2)).shape
        (2, 2)
        """
        arguments = operands.parameters("beta", a_positive=a, b_positive=b)
        return self._variates("beta", size, float64, device, arguments)

    def lognormal(
        self, mean: ArrayLike = 0.0, sigma: ArrayLike = 1.0, size: ShapeLike | None = None, *,
        device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """exp of normal variates of mean `mean` and standard deviation `sigma`, 0 or more.

        >>> default_rng(1).lognormal(0.0, 0.0).item()
        1.0
        """
        arguments = operands.parameters("lognormal", mean=mean, sigma_0=sigma)
        return self._variates("lognormal", size, float64, device, arguments)

    def poisson(self, lam: ArrayLike = 1.0, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
        """How many events happen where `lam` (0 to 2**53) are expected, as int64.

        >>> default_rng(1).poisson(0.0, size=2).tolist()
        [0, 0]
        """
        return self._variates("poisson", size, int64, device, operands.parameters("poisson", lam_count=lam), (int64,))

    def binomial(
        self, n: ArrayLike, p: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None
    ) -> ndarray:
        """How many of `n` (0 to 2**53) trials succeed, each with probability `p`, as int64.

        >>> default_rng(1).binomial(5, 1.0).item()
        5
        """
        arguments = operands.parameters("binomial", n_count=n, p_probability=p)
        return self._variates("binomial", size, int64, device, arguments, (int64,))

    def _variates(
        self, kind: str, size: Any, dtype: Any, device: Any, arguments: list[Any],
        legal: tuple[DType, ...] = (float32, float64),
    ) -> ndarray:  # fmt: skip
        row = asdtype(dtype)
        if row not in legal:
            names = " or ".join(map(str, legal))
            raise TypeError(f"{kind} variates are {names}, got {row}; cast them with astype")
        shape, target = operands.common(kind, size, device, arguments)
        result = empty(shape, row, target)
        if result.size:
            columns = [operands.column(x, shape, float64, result.device) for x in arguments]
            start = self.bit_generator.reserve(result.size)
            flat = result.reshape(result.size)
            if kind in _FILLS:
                _FILLS[kind](flat, start, *columns)
            else:
                variates.fill_variates(kind, VARIATES[kind], flat, start, columns)
        return result

    dirichlet = further.dirichlet
    f = further.f
    geometric = further.geometric
    gumbel = further.gumbel
    hypergeometric = further.hypergeometric
    laplace = further.laplace
    logistic = further.logistic
    logseries = further.logseries
    multinomial = further.multinomial
    multivariate_hypergeometric = further.multivariate_hypergeometric
    multivariate_normal = further.multivariate_normal
    negative_binomial = further.negative_binomial
    noncentral_chisquare = further.noncentral_chisquare
    noncentral_f = further.noncentral_f
    pareto = further.pareto
    power = further.power
    rayleigh = further.rayleigh
    standard_cauchy = further.standard_cauchy
    standard_t = further.standard_t
    triangular = further.triangular
    vonmises = further.vonmises
    wald = further.wald
    weibull = further.weibull
    zipf = further.zipf

    # ---- order

    def permutation(self, x: ArrayLike, axis: int = 0, *, device: DeviceLike = None) -> ndarray:
        """A copy of `x` with its slices along `axis` in random order; of an int, the order itself (int64).

        >>> sorted(default_rng(1).permutation(4).tolist())
        [0, 1, 2, 3]
        """
        if operands.is_number(x):
            return argsort(self.words(operands.integer_parameter("permutation", "x", x), device=device))
        x = asarray(x, device=device)
        k = shapes.normalize_axis(axis, x.ndim)
        return take(x, self.permutation(x.shape[k], device=x.device), axis=k)

    def shuffle(self, x: ArrayLike, axis: int = 0) -> None:
        """Brings the slices of the array `x` along `axis` into random order, in place. A NumPy array on the
        CPU is shuffled too.

        >>> x = pa.arange(5)
        >>> default_rng(1).shuffle(x)
        >>> sorted(x.tolist())
        [0, 1, 2, 3, 4]
        """
        if not isinstance(x, (ndarray, np.ndarray)):
            raise TypeError(f"shuffle() takes an array, got {type(x).__name__}; use permutation for a copy")
        array = x if isinstance(x, ndarray) else asarray(x, copy=False, device="cpu")
        array[...] = self.permutation(array, axis)

    def permuted(self, x: ArrayLike, axis: int | None = None, out: ndarray | None = None) -> ndarray:
        """A copy of `x` with each line along `axis` in a random order of its own; all elements for None.

        >>> default_rng(1).permuted([[1, 1], [1, 1]], axis=1).tolist()
        [[1, 1], [1, 1]]
        """
        x = asarray(x)
        if axis is None:
            result = self.permutation(x.reshape(x.size)).reshape(x.shape)
        else:
            order = argsort(self.words(x.shape, device=x.device), axis=axis)
            result = take_along_axis(x, order, axis=axis)
        if out is None:
            return result
        out[...] = result
        return out

    def choice(
        self, a: ArrayLike, size: ShapeLike | None = None, replace: bool = True, p: ArrayLike | None = None,
        axis: int = 0, shuffle: bool = True, *, device: DeviceLike = None,
    ) -> ndarray:  # fmt: skip
        """Slices of `a` along `axis`, or numbers below the int `a`, drawn with replacement or without,
        equally likely or with the probabilities `p`. Without replacement the order is random whatever
        `shuffle` says.

        >>> default_rng(1).choice([5, 5, 5], 2).tolist()
        [5, 5]
        """
        pool = None if operands.is_number(a) else asarray(a, device=device)
        along = 0 if pool is None else shapes.normalize_axis(axis, pool.ndim)
        count = operands.integer_parameter("choice", "a", a) if pool is None else pool.shape[along]
        target = get_device(device) if pool is None else pool.device
        shape = () if size is None else shapes.resolve_shape(size)
        index = self._chosen(count, shape, replace, p, target)
        return index if pool is None else take(pool, index, axis=along)

    def _chosen(self, count: int, shape: tuple[int, ...], replace: bool, p: Any, device: Any) -> ndarray:
        size = math.prod(shape)
        if count < 1 and size:
            raise ValueError("choice(): there is nothing to choose from; a is empty")
        odds = None if p is None else operands.probabilities(p, count)
        possible = count if odds is None else int(np.count_nonzero(odds))
        if not replace and size > possible:
            raise ValueError(
                f"choice(): {size} elements can't be drawn without replacement from {possible}; pass replace=True"
            )
        if not replace:
            drawn = self._different(count, size, odds, device)
            return drawn if drawn._shape == shape else drawn.reshape(shape)
        if odds is None:
            return self.integers(max(count, 1), size=shape, device=device)
        steps = np.cumsum(odds)  # of the host, so that they are the same for every device
        edges = asarray(steps / steps[-1] if count else steps, device=device)
        return searchsorted(edges, self.random(shape, device=device), side="right")

    def _different(self, count: int, size: int, odds: Any, device: Any) -> ndarray:
        """`wanted` numbers below `count`, none of them twice."""
        drawn: ndarray | None = None
        if MIN_RATIO * size <= count:
            drawn = first_few(self, count, size, odds)
            if drawn._size == size:
                return drawn if device is drawn.device else drawn.to_device(device)
        if odds is None:
            return self.permutation(count, device=device)[:size]
        remaining = odds.copy()
        if drawn is not None:
            remaining[asnumpy(drawn)] = 0.0
        with np.errstate(divide="ignore"):
            rarity = asarray(1.0 / remaining, device=device)
        keys = multiply(self.standard_exponential(count, device=device), rarity)
        if drawn is None:
            return argsort(keys)[:size]
        return concat([drawn.to_device(device), argsort(keys)[: size - drawn._size]])
