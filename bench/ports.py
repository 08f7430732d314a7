"""Programs of the gallery next to the same in other libraries: a part of `python -m bench`, and
`python -m bench.ports [--device cuda:0] [case ...]`.

`--first` prints the first calls with an empty cache instead.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pyarray as pa

from . import peers
from .part import alone
from .timing import Figure, Row, Times, geometric_mean, race, table

ABOUT = """Programs of the gallery next to the same in Numba (with prange), Warp, Quadrants and NumPy: one launch, or a
step of several. All results are compared with each other before anything is timed. Warp has one thread on CPUs, and no
atomics there; Numba has none, and runs what needs them on one thread: ratios are with one thread each if --threads 1
says so. "debug" is what is left of the speed in debug mode."""
ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs" / "examples"
TARGET = 0.7  # of each case; the geometric mean is to be 1
DEBUG = 0.6  # what debug mode leaves of the speed, at least
FIRST_CALL = 0.2  # seconds
REPEAT = 20  # launches in the time of one, on GPUs
Arrays = dict[str, Any]
Case = tuple[Arrays, tuple[str, ...], Callable[[Arrays], None], Callable[[], Any] | None]
f32 = np.float32


# ---- cases: arguments in the order of the peers' kernels, those that are results, this library's call, NumPy's


def game_of_life(ex: Any) -> Case:
    cells = ex.soup(1024, 1024)
    ours = lambda a: ex.step(a["after"], a["old"])  # noqa: E731
    return {"after": np.zeros_like(cells), "old": cells}, ("after",), ours, lambda: ex.reference(cells, 1)


def mandelbrot(ex: Any) -> Case:
    left, right, _, top = ex.WHOLE
    args = {"times": np.zeros((400, 600), np.int32), "left": left, "top": top}
    args |= {"pixel": (right - left) / 600, "limit": 200}
    numpy = lambda: ex.reference(400, 600, ex.WHOLE, 200)  # noqa: E731
    return args, ("times",), lambda a: ex.mandelbrot(*a.values()), numpy


def ray_marcher(ex: Any) -> Case:
    camera = ex.Camera()
    args = {"image": np.zeros((180, 270, 3), f32), "depth": np.zeros((180, 270), f32)}
    args |= {"camera_height": f32(camera.height), "camera_distance": f32(camera.distance)}
    args |= {"zoom": f32(camera.zoom), "tilt": f32(camera.tilt), "close": f32(ex.CLOSE), "far": f32(ex.FAR)}
    return args, ("image",), lambda a: ex.render(a["image"], a["depth"], camera), None


def nbody(ex: Any) -> Case:
    x, _, m = ex.galaxies(1023)
    args = {"out": np.zeros((len(x), 3), f32), "positions": x.astype(f32), "masses": m.astype(f32)}
    args |= {"softening": f32(ex.SOFTENING**2)}
    return args, ("out",), lambda a: ex.accelerations(a["out"], a["positions"], a["masses"]), None


def sph(ex: Any) -> Case:
    x = ex.dam(80, 100).astype(f32)
    column = np.clip((x[:, 0] / f32(ex.REACH)).astype(int), 0, ex.COLUMNS - 1)
    cell = np.clip((x[:, 1] / f32(ex.REACH)).astype(int), 0, ex.ROWS - 1) * ex.COLUMNS + column
    order = np.argsort(cell, kind="stable")
    start = np.searchsorted(cell[order], np.arange(ex.COLUMNS * ex.ROWS + 1))
    x, v = x, np.random.default_rng(0).normal(size=x.shape).astype(f32)
    args = {"force": np.zeros_like(x), "density": np.zeros(len(x), f32), "start": start, "order": order}
    args |= {"positions": x, "velocities": v, "columns": ex.COLUMNS, "rows": ex.ROWS, "reach": f32(ex.REACH)}
    args |= {"mass": f32(ex.MASS), "rest": f32(ex.REST), "stiffness": f32(ex.STIFFNESS)}

    def ours(a: Arrays) -> None:
        grid = ex.Grid(a["start"], a["order"])
        ex.accelerate(a["force"], a["density"], grid, a["positions"], a["velocities"])

    return args | {"viscosity": f32(ex.VISCOSITY)}, ("force", "density"), ours, None


def mpm(ex: Any) -> Case:
    x = ex.block(8000).astype(f32)
    args = {"x": x, "v": np.zeros_like(x), "c": np.zeros((len(x), 2, 2), f32), "volume": np.ones(len(x), f32)}
    args |= {"momentum": np.zeros((ex.N, ex.N, 2), f32), "mass": np.zeros((ex.N, ex.N), f32), "n": ex.N}
    args |= {"dt": f32(ex.DT), "stiffness": f32(ex.STIFFNESS), "rest_volume": f32(ex.VOLUME)}
    args |= {"particle_mass": f32(ex.MASS), "gravity": f32(ex.GRAVITY)}
    names = ("x", "v", "c", "volume", "momentum", "mass")
    return args, ("x", "v"), lambda a: ex.step(*(a[name] for name in names)), None


def bvh(ex: Any) -> Case:
    tree, _ = ex.build(pa.asarray(ex.knot(24, 240), dtype=pa.float32, device="cpu"))
    origins, directions = (np.array(a, f32) for a in ex.rays(160, 200))
    args = {"hits": np.zeros(len(origins), np.int64), "distances": np.zeros(len(origins), f32)}
    args |= {"low": pa.asnumpy(tree.low), "high": pa.asnumpy(tree.high), "triangles": pa.asnumpy(tree.triangles)}
    args |= {"leaves": tree.leaves, "origins": origins, "directions": directions}

    def ours(a: Arrays) -> None:
        there = ex.Tree(a["low"], a["high"], a["triangles"], tree.leaves)
        ex.trace(a["hits"], a["distances"], there, a["origins"], a["directions"])

    return args, ("hits",), ours, None


def cloth(ex: Any) -> Case:
    n = 160
    x, z = np.meshgrid(np.linspace(-0.5, 0.5, n), np.linspace(-0.5, 0.5, n), indexing="ij")
    p = (np.stack([x, 0 * x, z], -1) + np.random.default_rng(0).normal(0, 1e-4, (n, n, 3))).astype(f32)
    args = {"after": np.zeros_like(p), "velocities": np.zeros_like(p), "positions": p}
    args |= {"neighbours": np.array(ex.NEIGHBOURS), "cell": f32(1 / (n - 1)), "stiffness": f32(ex.STIFFNESS)}
    args |= {"damping": f32(ex.DAMPING), "drag": f32(ex.DRAG), "gravity": f32(ex.GRAVITY), "step": f32(ex.STEP)}
    names = ("after", "velocities", "positions", "neighbours")
    return args, ("after",), lambda a: ex.pull(*(a[name] for name in names), 1 / (n - 1)), None


def lattice_boltzmann(ex: Any) -> Case:
    f, solid = ex.start(128, 256)
    args = {"after": np.zeros_like(f), "old": f, "solid": solid, "e": ex.DIRECTIONS, "w": ex.WEIGHTS}
    args |= {"opposite": ex.OPPOSITE, "relaxation": ex.RELAXATION, "speed": ex.SPEED}
    names = ("after", "old", "solid", "e", "w", "opposite")
    return args, ("after",), lambda a: ex.step(*(a[name] for name in names)), lambda: ex.reference(128, 256, 1)


def black_scholes(ex: Any) -> Case:
    stock, strike, years = ex.options(100_000)
    args = {"calls": np.zeros_like(stock), "puts": np.zeros_like(stock), "stock": stock, "strike": strike}
    args |= {"years": years, "rate": ex.RATE, "volatility": ex.VOLATILITY}
    return args, ("calls", "puts"), lambda a: ex.prices(*list(a.values())[:5]), None


def jacobi(ex: Any) -> Case:
    plate = ex.heated(1000)
    args = {"after": plate.copy(), "old": plate, "change": np.zeros(1)}
    return args, ("after", "change"), lambda a: ex.sweep(*a.values()), lambda: ex.reference(plate, 1)


def kmeans(ex: Any) -> Case:
    points = ex.blobs(100_000, 8)
    args = {"labels": np.zeros(len(points), np.int32), "means": points[:8].copy()}
    args |= {"sums": np.zeros((8, 2), np.int64), "counts": np.zeros(8, np.int64), "points": points, "unit": ex.UNIT}
    numpy = lambda: ex.reference(points, points[:8], 1)  # noqa: E731
    return args, ("labels", "means"), lambda a: ex.iterate(*list(a.values())[:5]), numpy


def sparse_product(ex: Any) -> Case:
    matrix = ex.laplacian(300)
    x = np.random.default_rng(0).normal(size=300**2)
    args = {"out": np.zeros_like(x), "start": matrix.start, "columns": matrix.columns, "values": matrix.values}
    numpy = lambda: np.add.reduceat(matrix.values * x[matrix.columns], matrix.start[:-1])  # noqa: E731

    def ours(a: Arrays) -> None:
        ex.multiply(a["out"], ex.Matrix(a["start"], a["columns"], a["values"]), a["x"], a["product"])

    return args | {"x": x, "product": np.zeros(1)}, ("out", "product"), ours, numpy


def layer_norm(ex: Any) -> Case:
    rng = np.random.default_rng(0)
    x, weight, bias = rng.normal(3, 2, (1000, 768)).astype(f32), *rng.normal(size=(2, 768)).astype(f32)
    args = {"y": np.zeros_like(x), "mean": np.zeros(1000, f32), "scale": np.zeros(1000, f32), "x": x}
    args |= {"weight": weight, "bias": bias, "epsilon": f32(ex.EPSILON)}
    numpy = lambda: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True)) * weight + bias  # noqa: E731
    return args, ("y",), lambda a: ex.forward(*list(a.values())[:6]), numpy


def gray_scott(ex: Any) -> Case:
    u, v = (a.astype(f32) for a in ex.seeds(768, 400))
    recipe = ex.Recipe()
    args = {"new_u": np.zeros_like(u), "new_v": np.zeros_like(v), "u": u, "v": v}
    args |= {name: f32(getattr(recipe, name)) for name in ("feed", "kill", "spread_u", "spread_v")}
    numpy = lambda: ex.reference(u, v, 1, recipe)  # noqa: E731
    return args, ("new_u", "new_v"), lambda a: ex.react(*list(a.values())[:4], recipe), numpy


# case → what makes it; the name of its example, where that is another
CASES: dict[str, Callable[[Any], Case]] = {
    case.__name__: case
    for case in (
        game_of_life, mandelbrot, ray_marcher, nbody, sph, mpm, bvh, cloth, lattice_boltzmann, black_scholes, jacobi,
        kmeans, sparse_product, layer_norm, gray_scott,
    )
}  # fmt: skip
NAMES = {"sparse_product": "conjugate_gradients"}


def make(name: str) -> Case:
    """A case, of the program with its name."""
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return CASES[name](importlib.import_module(NAMES.get(name, name)))


# ---- libraries: a call, and what gives its results


Candidate = tuple[Callable[[], Any], Callable[[], Arrays]]


def of_pyarray(case: Case, device: str) -> Candidate:
    args, results, ours, _ = case
    there = {k: pa.asarray(v, copy=True, device=device) if isinstance(v, np.ndarray) else v for k, v in args.items()}
    return functools.partial(ours, there), lambda: {name: pa.asnumpy(there[name]) for name in results}


def of_numba(name: str, case: Case, device: str) -> Candidate | None:
    if device != "cpu":
        return None
    kernel = getattr(importlib.import_module("bench.kernels_numba"), name)
    there = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in case[0].items()}
    return functools.partial(kernel, *there.values()), lambda: {k: there[k] for k in case[1]}


def of_warp(name: str, case: Case, device: str) -> Candidate | None:
    module: Any = importlib.import_module("bench.kernels_warp")
    if name not in module.CASES:
        return None
    call, results = module.make(name, case[0], device)
    return call, lambda: {k: np.asarray(v).reshape(case[0][k].shape) for k, v in results(case[1]).items()}


def of_quadrants(name: str, case: Case, device: str) -> Candidate | None:
    module: Any = importlib.import_module("bench.kernels_quadrants")
    if device != "cpu" or name not in module.CASES:
        return None
    call, there = module.make(name, case[0])
    return call, lambda: {k: there[k] for k in case[1]}


def candidates(name: str, case: Case, device: str, debug: bool) -> dict[str, Candidate]:
    """By library: those that are here and have the case."""
    found: dict[str, Candidate | None] = {"pyarray": of_pyarray(case, device)}
    if debug:
        call, results = of_pyarray(case, device)
        found["pyarray debug"] = functools.partial(_checked, call), results
    makers = {"numba": of_numba, "warp": of_warp, "quadrants": of_quadrants}
    for library, maker in makers.items():
        try:
            found[library] = maker(name, case, device)
        except ImportError as error:
            peers.missing.setdefault(library, f"{type(error).__name__}: {error}")
            print(f"  ({library}: {error})")
    return {k: v for k, v in found.items() if v is not None}


def _checked(call: Callable[[], Any]) -> None:
    with pa.debug():
        call()


def agree(name: str, found: dict[str, Candidate]) -> None:
    """Raise `ValueError` where the results of a first call differ by more than rounding does."""
    first: Arrays | None = None
    for library, (call, results) in found.items():
        call()
        got = {k: np.array(v, dtype=float) for k, v in results().items()}
        first = got if first is None else first
        for k, value in got.items():
            near = np.isclose(value, first[k], rtol=1e-3, atol=1e-3 * abs(first[k][np.isfinite(first[k])]).max())
            if np.mean(near) < 0.99:
                raise ValueError(f"{name}: {k} of {library} is another")


# ---- what is measured


def _repeated(call: Callable[[], Any], wait: Callable[[], Any]) -> None:
    for _ in range(REPEAT):
        call()
    wait()


def waits(device: str) -> dict[str, Callable[[], Any]]:
    """By library: what waits for a GPU."""
    found: dict[str, Callable[[], Any]] = {"pyarray": lambda: pa.synchronize(device)}
    with contextlib.suppress(ImportError):
        found["warp"] = importlib.import_module("warp").synchronize
    return found


def measure(name: str, device: str, budget: float, debug: bool = False) -> Row:
    """All libraries in one race."""
    case = make(name)
    found = candidates(name, case, device, debug)
    agree(name, found)
    calls: dict[str, Callable[[], Any]] = {library: call for library, (call, _) in found.items()}
    if device != "cpu":
        wait = waits(device)
        calls = {
            k: functools.partial(_repeated, c, wait[k.partition(" ")[0]]) for k, c in calls.items() if "q" not in k
        }
    elif case[3] is not None:
        calls["numpy"] = case[3]
    times = race(calls, budget)
    libraries = tuple(k for k in calls if not k.startswith("pyarray"))
    facts = {}
    if (checked := times.get("pyarray debug")) and (own := times["pyarray"]):
        facts["debug"] = round(own.min / checked.min, 2)
    return Row(f"gallery, {device}", name, times, TARGET, against=libraries, facts=facts)


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """The part of `python -m bench`: all on the CPU, with debug mode and first calls."""
    yield from races(quick, "cpu", (), debug=True)
    for name, times in first_calls((), 1 if quick else 3):
        yield Figure(f"first call with an empty cache, {name}", times.min, "s", at_most=FIRST_CALL)
        print(f"{name:20} {times.min:.3f} ({times.median:.3f}) s")


def races(quick: bool, device: str, names: Sequence[str], debug: bool) -> Iterator[Row | Figure]:
    """Each case, printed at the end."""
    rows = []
    for name in names or CASES:
        rows.append(measure(name, device, 0.1 if quick else 0.6, debug))
        yield rows[-1]
    print(table(rows))
    for row in rows:
        print(f"{row.case}: debug mode {row.facts['debug']} of release") if row.facts else None
    for figure, what in (("min", "minima"), ("median", "medians")):
        mean = geometric_mean(rows, figure)
        if mean is not None:
            yield Figure(f"geometric mean of {what}", mean, at_least=1.0)
            print(f"geometric mean of {what}: {mean:.2f}")
    least = min((row for row in rows if "debug" in row.facts), key=lambda row: row.facts["debug"], default=None)
    if least is not None:
        yield Figure(f"least speed in debug mode, {least.case}", least.facts["debug"], "of release", at_least=DEBUG)


def first_calls(names: Sequence[str], device: str = "cpu", processes: int = 3) -> Iterator[tuple[str, Times]]:
    """Seconds of first calls in fresh processes with an empty cache."""
    for name in names or CASES:
        seconds = []
        for _ in range(processes):
            with tempfile.TemporaryDirectory(prefix="bench-cache-") as cache:
                command = [sys.executable, "-m", "bench.ports", "--one", name, "--device", device]
                env = os.environ | {"PYARRAY_CACHE_DIR": cache}
                done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
                seconds.append(float(done.stdout.split()[-1]))
        yield name, Times(min(seconds), statistics.median(seconds), processes, 1)


def first_call(name: str, device: str) -> None:
    """The part of `first_calls` that is a process of its own. What a process pays once, another kernel pays."""
    call, _ = of_pyarray(make(name), device)
    pa.kernel(_small)(pa.zeros(3, device=device))
    pa.synchronize(device)
    began = time.perf_counter()
    call()
    pa.synchronize(device)
    print(time.perf_counter() - began)


def _small(v):  # type: ignore[no-untyped-def]
    for i in range(v.size):
        v[i] += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="cases, all unless given")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter samples")
    parser.add_argument("--json", help="all, and first calls; where to write the figures, as other parts do")
    parser.add_argument("--debug", action="store_true", help="debug mode, too")
    parser.add_argument("--first", action="store_true", help="first calls with an empty cache")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        first_call(options.one, options.device)
    elif options.json:
        alone("ports")
    elif options.first:
        for name, times in first_calls(options.names, options.device):
            print(f"{name:20} {times.min:.3f} ({times.median:.3f}) s")
    else:
        for _ in races(options.quick, options.device, options.names, options.debug):
            pass


if __name__ == "__main__":
    main()
