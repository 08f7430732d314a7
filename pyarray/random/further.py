"""Further distributions of `Generator`, which takes these functions as its methods. Parameters, sizes and
errors are as there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import shapes
from ..api.standard.elementwise import multiply, subtract
from ..array import empty, ndarray
from ..array_convert import asarray, asnumpy
from ..driver.base import get_device
from ..dtypes import float64, int64
from ..kernels.random import distributions
from ..typing import ArrayLike, DeviceLike, ShapeLike
from .operands import is_number, parameters


def _drawn(self: Any, name: str, size: Any, device: Any, **by_name: Any) -> ndarray:
    return self._variates(name, size, float64, device, parameters(name, **by_name))


def _counted(self: Any, name: str, size: Any, device: Any, **by_name: Any) -> ndarray:
    return self._variates(name, size, int64, device, parameters(name, **by_name), (int64,))


def laplace(
    self: Any, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: ShapeLike | None = None, *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """Variates whose distance from `loc` is exponential of mean `scale`, 0 or more, to either side.

    >>> pa.random.default_rng(1).laplace(5.0, 0.0).item()
    5.0
    """
    return _drawn(self, "laplace", size, device, loc=loc, scale_0=scale)


def logistic(
    self: Any, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: ShapeLike | None = None, *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """Logistic variates: `loc` + `scale` * log(u / (1 - u))."""
    return _drawn(self, "logistic", size, device, loc=loc, scale_0=scale)


def gumbel(
    self: Any, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: ShapeLike | None = None, *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """Gumbel variates, of the largest of many: `loc` - `scale` * log(-log(u))."""
    return _drawn(self, "gumbel", size, device, loc=loc, scale_0=scale)


def rayleigh(self: Any, scale: ArrayLike = 1.0, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Lengths of vectors of two normal variates of standard deviation `scale`."""
    return _drawn(self, "rayleigh", size, device, scale_0=scale)


def weibull(self: Any, a: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Weibull variates of shape `a`, 0 or more: exponential ones to the power 1 / `a`."""
    return _drawn(self, "weibull", size, device, a_0=a)


def pareto(self: Any, a: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Pareto II (Lomax) variates of shape `a`, more than 0; 1 more is the classical Pareto variate."""
    return _drawn(self, "pareto", size, device, a_positive=a)


def power(self: Any, a: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Variates in [0, 1] with the density a * x**(a - 1), `a` more than 0."""
    return _drawn(self, "power", size, device, a_positive=a)


def triangular(
    self: Any, left: ArrayLike, mode: ArrayLike, right: ArrayLike, size: ShapeLike | None = None, *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """Variates from `left` to `right` whose density rises to `mode` and falls from there. Raises `ValueError`
    unless left <= mode <= right and left < right.

    >>> 1.0 <= pa.random.default_rng(1).triangular(1, 2, 4).item() <= 4.0
    True
    """
    a, b, c = (np.asarray(asnumpy(x), dtype=np.float64) for x in (left, mode, right))
    if not ((a <= b) & (b <= c) & (a < c)).all():
        raise ValueError(
            f"triangular(): left <= mode <= right and left < right are needed, got {left!r}, {mode!r}, {right!r}"
        )
    return _drawn(self, "triangular", size, device, left=left, mode=mode, right=right)


def standard_cauchy(self: Any, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Quotients of two standard normal variates."""
    return _drawn(self, "standard_cauchy", size, device)


def standard_t(self: Any, df: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Student's t variates of `df` degrees of freedom, more than 0."""
    return _drawn(self, "standard_t", size, device, df_positive=df)


def f(
    self: Any, dfnum: ArrayLike, dfden: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None
) -> ndarray:
    """Quotients of two chi-square variates, each over its degrees of freedom, more than 0."""
    return _drawn(self, "f", size, device, dfnum_positive=dfnum, dfden_positive=dfden)


def noncentral_chisquare(
    self: Any, df: ArrayLike, nonc: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None
) -> ndarray:
    """Sums of `df` (more than 0) squares of normal variates of variance 1 whose squared means add up to
    `nonc`."""
    return _drawn(self, "noncentral_chisquare", size, device, df_positive=df, nonc_count=nonc)


def noncentral_f(
    self: Any, dfnum: ArrayLike, dfden: ArrayLike, nonc: ArrayLike, size: ShapeLike | None = None, *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """`f` with a noncentral chi-square variate above."""
    named = {"dfnum_positive": dfnum, "dfden_positive": dfden, "nonc_count": nonc}
    return _drawn(self, "noncentral_f", size, device, **named)


def wald(
    self: Any, mean: ArrayLike, scale: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None
) -> ndarray:
    """Inverse Gaussian variates of `mean` and `scale`, both more than 0."""
    return _drawn(self, "wald", size, device, mean_positive=mean, scale_positive=scale)


def vonmises(
    self: Any, mu: ArrayLike, kappa: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None
) -> ndarray:
    """Angles in [-pi, pi) around `mu`, the closer the larger `kappa`, 0 or more."""
    return _drawn(self, "vonmises", size, device, mu=mu, kappa_finite=kappa)


def geometric(self: Any, p: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """How many trials there are up to the first success, each with probability `p`, more than 0; int64.

    >>> pa.random.default_rng(1).geometric(1.0, 2).tolist()
    [1, 1]
    """
    return _counted(self, "geometric", size, device, p_share=p)


def negative_binomial(
    self: Any, n: ArrayLike, p: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None
) -> ndarray:
    """How many trials fail before `n` (more than 0) succeed, each with probability `p`, more than 0;
    int64."""
    trials, share = (np.asarray(asnumpy(x), dtype=np.float64) for x in (n, p))
    if ((trials > 0) & (share > 0) & ((1 - share) * (trials + 10 * np.sqrt(trials)) > 2.0**53 * share)).any():
        raise ValueError("negative_binomial(): n * (1 - p) / p is at most 2**53; n is too large or p too small")
    return _counted(self, "negative_binomial", size, device, n_positive=n, p_share=p)


def logseries(self: Any, p: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Whole numbers k from 1 on, as likely as p**k / k; `p` is from 0 up to, but without, 1."""
    return _counted(self, "logseries", size, device, p_part=p)


def zipf(self: Any, a: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Whole numbers k from 1 on, as likely as k**-a; `a` is more than 1."""
    return _counted(self, "zipf", size, device, a_above=a)


def hypergeometric(
    self: Any, ngood: ArrayLike, nbad: ArrayLike, nsample: ArrayLike, size: ShapeLike | None = None, *,
    device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """How many of `nsample` elements, drawn without replacement from `ngood` + `nbad` (at most 10**9 each),
    are good; int64. Raises `ValueError` for a sample larger than all.

    >>> pa.random.default_rng(1).hypergeometric(3, 0, 2).item()
    2
    """
    good, bad, sample = (np.asarray(asnumpy(x)) for x in (ngood, nbad, nsample))
    if not (sample <= good + bad).all():
        raise ValueError(
            f"hypergeometric(): nsample is at most ngood + nbad, got {nsample!r} of {ngood!r} and {nbad!r}"
        )
    named = {"ngood_population": ngood, "nbad_population": nbad, "nsample_population": nsample}
    return _counted(self, "hypergeometric", size, device, **named)


# ---- vectors


def multinomial(
    self: Any, n: ArrayLike, pvals: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None
) -> ndarray:
    """How many of `n` trials have each of the outcomes, whose probabilities are the last axis of `pvals`;
    int64. The last probability is what the others leave of 1.

    >>> pa.random.default_rng(1).multinomial(9, [0.0, 1.0]).tolist()
    [0, 9]
    """
    parameters("multinomial", n_count=n)
    odds = np.asarray(asnumpy(pvals), dtype=np.float64)
    if not odds.ndim or not odds.shape[-1]:
        raise ValueError(f"multinomial(): pvals has an axis of probabilities, got shape {odds.shape}")
    if not (odds >= 0).all() or (odds[..., :-1].sum(-1) > 1 + 1e-12).any():
        raise ValueError("multinomial(): pvals are probabilities of 0 or more whose sum is at most 1")
    trials: Any = n if isinstance(n, ndarray) or is_number(n) else asarray(n, device=device)
    shape = np.shape(trials) if is_number(trials) else trials.shape
    together = shapes.broadcast_shapes(shape, odds.shape[:-1])
    shape = together if size is None else shapes.resolve_shape(size)
    target = trials.device if isinstance(trials, ndarray) else get_device(device)
    out = empty((*shape, odds.shape[-1]), int64, target)
    remaining: Any = trials
    for k in range(odds.shape[-1] - 1):
        remaining_odds = 1 - odds[..., :k].sum(-1)
        share = np.clip(
            np.divide(odds[..., k], remaining_odds, out=np.zeros_like(remaining_odds), where=remaining_odds > 0),
            0,
            1,
        )
        drawn = self.binomial(remaining, asarray(share, device=target), shape, device=target)
        out[..., k] = drawn
        remaining = subtract(asarray(remaining, device=target), drawn)
    out[..., -1] = remaining
    return out


def multivariate_hypergeometric(
    self: Any, colors: ArrayLike, nsample: int, size: ShapeLike | None = None, *, device: DeviceLike = None
) -> ndarray:
    """How many elements of each color are among `nsample`, drawn without replacement from as many of each as
    `colors` says; int64.

    >>> pa.random.default_rng(1).multivariate_hypergeometric([2, 3], 5).tolist()
    [2, 3]
    """
    counts = [int(c) for c in np.asarray(asnumpy(colors)).reshape(-1)]
    if any(c < 0 for c in counts) or not 0 <= nsample <= sum(counts):
        raise ValueError(
            f"multivariate_hypergeometric(): nsample is from 0 to the sum of colors, got {nsample} of {counts}"
        )
    shape = () if size is None else shapes.resolve_shape(size)
    target = get_device(device)
    out = empty((*shape, len(counts)), int64, target)
    if not counts:
        return out
    remaining: Any = asarray(nsample, int64, device=target)
    for k, count in enumerate(counts[:-1]):
        drawn = self.hypergeometric(count, sum(counts[k + 1 :]), remaining, shape, device=target)
        out[..., k] = drawn
        remaining = subtract(remaining, drawn)
    out[..., -1] = remaining
    return out


def dirichlet(self: Any, alpha: ArrayLike, size: ShapeLike | None = None, *, device: DeviceLike = None) -> ndarray:
    """Vectors of numbers of 0 or more that add up to 1: gamma variates of the shapes `alpha`, more than 0,
    over their sum.

    >>> pa.random.default_rng(1).dirichlet([1.0, 2.0, 3.0], 4).shape
    (4, 3)
    """
    alphas = np.asarray(asnumpy(alpha), dtype=np.float64)
    if alphas.ndim != 1 or not alphas.size or not (alphas > 0).all():
        raise ValueError(f"dirichlet(): alpha is a vector of numbers of more than 0, got {alpha!r}")
    shape = () if size is None else shapes.resolve_shape(size)
    target = get_device(device)
    if alphas.max() >= 0.1:
        gammas: ndarray = self.standard_gamma(asarray(alphas, device=target), (*shape, alphas.size))
        if gammas.size:
            distributions.normalize_rows(gammas.reshape(-1, alphas.size))
        return gammas
    # gamma variates of small shapes may all be 0: pieces are broken off what is left
    out = empty((*shape, alphas.size), float64, target)
    remaining: Any = asarray(1.0, device=target)
    for k in range(alphas.size - 1):
        piece = self.beta(float(alphas[k]), float(alphas[k + 1 :].sum()), shape, device=target)
        out[..., k] = multiply(remaining, piece)
        remaining = multiply(remaining, subtract(1.0, piece))
    out[..., -1] = remaining
    return out


def multivariate_normal(
    self: Any, mean: ArrayLike, cov: ArrayLike, size: ShapeLike | None = None, check_valid: str = "warn",
    tol: float = 1e-8, *, method: str = "svd", device: DeviceLike = None,
) -> ndarray:  # fmt: skip
    """Vectors of normal variates of these means and this covariance matrix, which is factored on the host by
    `method`: "svd", "eigh" or "cholesky". `check_valid` is what happens where it is no covariance within
    `tol`: "warn", "raise" or "ignore".

    >>> pa.random.default_rng(1).multivariate_normal([1.0, 2.0], pa.eye(2), 3).shape
    (3, 2)
    """
    center, covariance = (np.asarray(asnumpy(x), dtype=np.float64) for x in (mean, cov))
    if center.ndim != 1 or covariance.shape != (center.size, center.size):
        raise ValueError(
            f"multivariate_normal(): mean is a vector and cov a matrix with as many rows and columns, got "
            f"shapes {center.shape} and {covariance.shape}"
        )
    factor = _factor(covariance, method, check_valid, tol)
    shape = () if size is None else shapes.resolve_shape(size)
    target = get_device(device)
    normal = self.standard_normal((*shape, center.size), device=target)
    out = empty((*shape, center.size), float64, target)
    if out.size:
        rows, to = (x.reshape(-1, center.size) for x in (normal, out))
        device_arrays = (asarray(np.ascontiguousarray(x), device=target) for x in (factor.T, center))
        distributions.combine_rows(to, rows, *device_arrays)
    return out


def _factor(cov: Any, method: str, check_valid: str, tol: float) -> Any:
    """A matrix that gives `cov` when it is multiplied by its transpose."""
    if method not in ("svd", "eigh", "cholesky") or check_valid not in ("warn", "raise", "ignore"):
        raise ValueError(
            "multivariate_normal(): method is svd, eigh or cholesky and check_valid warn, raise or ignore, "
            f"got {method!r} and {check_valid!r}"
        )
    if method == "cholesky":
        return np.linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = np.linalg.eigh(cov)
        fine = bool((values >= -tol).all())
    else:
        vectors, values, right = np.linalg.svd(cov)
        fine = bool(np.allclose(np.dot(right.T * values, right), cov, rtol=tol, atol=tol))
    if not fine and check_valid != "ignore":
        what = "covariance is not symmetric positive-semidefinite"
        if check_valid == "raise":
            raise ValueError(f"multivariate_normal(): {what}; pass check_valid='ignore' to draw all the same")
        warnings.warn(what, RuntimeWarning, stacklevel=4)
    return vectors * np.sqrt(np.abs(values))
