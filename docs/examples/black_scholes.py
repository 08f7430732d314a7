"""Prices of European options, by the formula and by simulated paths.

Black and Scholes, "The Pricing of Options and Corporate Liabilities" (Journal of Political Economy 81, 1973). Both are
examples of CUDA's samples and of Numba's tutorials. Each path has random numbers of its own, the same on every device.

    python docs/examples/black_scholes.py
"""

import argparse
import math

import numpy as np

import pyarray as pa

RATE, VOLATILITY = 0.02, 0.3


@pa.func
def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


@pa.kernel
def prices(calls, puts, stock, strike, years):
    for i in range(calls.size):
        deviation = VOLATILITY * math.sqrt(years[i])
        d1 = (math.log(stock[i] / strike[i]) + (RATE + VOLATILITY**2 / 2) * years[i]) / deviation
        d2 = d1 - deviation
        discounted = strike[i] * math.exp(-RATE * years[i])
        calls[i] = stock[i] * normal_cdf(d1) - discounted * normal_cdf(d2)
        puts[i] = discounted * normal_cdf(-d2) - stock[i] * normal_cdf(-d1)


@pa.kernel
def simulated_call(out, stock: float, strike: float, years: float, paths: int, steps: int, seed: int):
    """The mean payoff over paths of the stock, and its square's, discounted."""
    payoff, square = 0.0, 0.0
    dt = years / steps
    for path in range(paths):
        rng = pa.rng(seed, path)
        log_price = math.log(stock)
        for _ in range(steps):
            log_price += (RATE - VOLATILITY**2 / 2) * dt + VOLATILITY * math.sqrt(dt) * rng.normal()
        gain = math.exp(-RATE * years) * max(math.exp(log_price) - strike, 0.0)
        payoff += gain
        square += gain * gain
    out[0], out[1] = payoff / paths, square / paths


def price(stock, strike, years, device=None):
    stock, strike, years = (pa.asarray(a, device=device) for a in (stock, strike, years))
    calls, puts = pa.empty_like(stock), pa.empty_like(stock)
    prices(calls, puts, stock, strike, years)
    return pa.asnumpy(calls), pa.asnumpy(puts)


def simulate(stock, strike, years, paths, device=None):
    """A price and its standard error."""
    out = pa.empty(2, device=device)
    simulated_call(out, stock, strike, years, paths, 8, 2026)
    mean, square = out.tolist()
    return mean, math.sqrt((square - mean * mean) / paths)


def reference(stock, strike, years):
    erfc = np.vectorize(math.erfc)
    deviation = VOLATILITY * np.sqrt(years)
    d1 = (np.log(stock / strike) + (RATE + VOLATILITY**2 / 2) * years) / deviation
    call = stock * erfc(-d1 / np.sqrt(2)) / 2 - strike * np.exp(-RATE * years) * erfc((deviation - d1) / np.sqrt(2)) / 2
    return call, call - stock + strike * np.exp(-RATE * years)  # put-call parity


def options(count):
    rng = np.random.default_rng(0)
    return rng.uniform(5, 30, count), rng.uniform(1, 100, count), rng.uniform(0.25, 10, count)


def check(device=None):
    terms = options(1000)
    np.testing.assert_allclose(price(*terms, device), reference(*terms), rtol=1e-9, atol=1e-12)
    mean, error = simulate(20.0, 21.0, 1.5, 20_000, device)
    [exact], _ = reference(np.array([20.0]), np.array([21.0]), np.array([1.5]))
    assert abs(mean - exact) < 4 * error < 0.15


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--paths", type=int, default=200_000)
    choice = parser.parse_args()
    check(choice.device)
    mean, error = simulate(20.0, 21.0, 1.5, choice.paths, choice.device)
    [exact], _ = reference(np.array([20.0]), np.array([21.0]), np.array([1.5]))
    print(f"a call by the formula {exact:.4f}, by {choice.paths} paths {mean:.4f} ± {error:.4f}")


if __name__ == "__main__":
    main()
