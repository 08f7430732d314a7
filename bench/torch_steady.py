"""Compiled models beside Inductor's in one process: `python -m bench.torch_steady [--threads 2]`.

The models of `bench.torch_models`, when nothing is compiled any more. For each size the two backends take
turns, a quarter of a second each, and the shortest call of each counts: on a machine with other work, figures
of two processes differ by more than the backends do. A model's ratio is the geometric mean over the sizes.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from .torch_models import SIZES, models

TURN = 0.25  # seconds
BACKENDS = ("pyarray", "inductor")


def steps(name: str) -> dict[str, Callable[[int], None]]:
    """For each backend a function that calls the model with a size, and trains it where that is asked for."""
    import torch

    from pyarray.torch.backend import pyarray

    make, draw, trained = models("cpu")[name]
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, inputs = make(), {n: draw(n) for n in SIZES}

    def step_of(backend: Any) -> Callable[[int], None]:
        own = copy.deepcopy(model)
        call = torch.compile(own, backend=backend, dynamic=True)

        def step(n: int) -> None:
            if not trained:
                with torch.no_grad():
                    call(inputs[n])
                return
            own.zero_grad()
            y = call(inputs[n])
            (y * y).mean().backward()

        return step

    return {"pyarray": step_of(pyarray), "inductor": step_of("inductor")}


def shortest(step: Callable[[int], None], n: int) -> float:
    """Seconds of the shortest call within a turn, after one that isn't counted."""
    step(n)
    least, end = float("inf"), time.perf_counter() + TURN
    while (start := time.perf_counter()) < end:
        step(n)
        least = min(least, time.perf_counter() - start)
    return least


def compare(name: str, sizes: tuple[int, ...], rounds: int) -> dict[str, dict[int, float]]:
    """Backend → size → seconds."""
    made = steps(name)
    for step in made.values():
        for n in (*SIZES, *SIZES):
            step(n)
    best = {backend: dict.fromkeys(sizes, float("inf")) for backend in BACKENDS}
    for turn in range(rounds):
        for n in sizes:
            for backend in BACKENDS[:: -1 if turn % 2 else 1]:
                best[backend][n] = min(best[backend][n], shortest(made[backend], n))
    return best


def main() -> None:
    """Print a line for each model, and the geometric mean."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[2, 7, 12, 17, 28])
    args = parser.parse_args()
    os.environ["PYARRAY_NUM_THREADS"] = str(args.threads)
    import torch

    torch.set_num_threads(args.threads)
    ratios = []
    for name in models("cpu"):
        if args.only and args.only not in name:
            continue
        best = compare(name, tuple(args.sizes), args.rounds)
        ratios.append(statistics.geometric_mean(best["inductor"][n] / best["pyarray"][n] for n in args.sizes))
        each = "  ".join(f"{n}: {1e6 * best['pyarray'][n]:.0f}/{1e6 * best['inductor'][n]:.0f}" for n in args.sizes)
        print(f"{name:16} inductor / pyarray {ratios[-1]:.3f}   µs, ours/theirs by size: {each}", flush=True)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.3f} with {args.threads} threads")


if __name__ == "__main__":
    main()
