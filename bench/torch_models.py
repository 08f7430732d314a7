"""Models under `torch.compile`: `python -m bench.torch_models [--device cuda] [--only NAME]`.

For each model and backend: the time of the first pass over all sizes, compiles included; then the time of a
pass when nothing is compiled any more, the median of several; how far results are from eager's; and how often
a compiler ran for the first size, and for all that came later, 1 among them. Each backend starts from an
empty cache of its own, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

SIZES = (16, 8, 24, 1, 12, 31, 2, 20, 7, 28, 5, 32, 9, 17, 3, 26, 11, 30, 13, 22)
BACKENDS = ("eager", "inductor", "pyarray")


def models(device: str) -> dict[str, tuple[Callable[[], Any], Callable[[int], Any], bool]]:
    """Name → what makes the model, what makes its input of a size, and whether it is trained."""
    import torch
    from torch import nn
    from torch.nn import functional

    wide = 1024 if device == "cuda" else 128
    steps = 256 if device == "cuda" else 32

    class Norm(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x: Any) -> Any:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight

    class Llama(nn.Module):
        def __init__(self, width: int = wide, heads: int = 8):
            super().__init__()
            self.norm, self.after, self.heads = Norm(width), Norm(width), heads
            self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
            self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
            self.down = nn.Linear(2 * width, width, bias=False)

        def turned(self, x: Any) -> Any:
            half = x.shape[-1] // 2
            places = torch.arange(x.shape[-2], device=x.device)[:, None].float()
            speeds = torch.exp(torch.arange(half, device=x.device).float() * (-9.2 / half))
            cos, sin = torch.cos(places * speeds), torch.sin(places * speeds)
            a, b = x[..., :half], x[..., half:]
            return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            y = self.norm(x)
            q, k, v = (
                f(y).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                for f in (self.q, self.k, self.v)
            )
            near = (self.turned(q) @ self.turned(k).transpose(-1, -2)) / (width // self.heads) ** 0.5
            later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            seen = near.masked_fill(later, float("-inf")).softmax(-1) @ v
            x = x + self.o(seen.transpose(1, 2).reshape(batch, length, width))
            y = self.after(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    class Layer(nn.Module):
        def __init__(self, width: int = wide, heads: int = 8):
            super().__init__()
            self.norm, self.after, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
            self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.into(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.after(x))

    class Residual(nn.Module):
        def __init__(self, channels: int = 64 if device == "cuda" else 16):
            super().__init__()
            self.a, self.b = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
            self.m, self.n = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

        def forward(self, x: Any) -> Any:
            return functional.relu(self.n(self.b(functional.relu(self.m(self.a(x))))) + x)

    def convolutions() -> Any:
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3), nn.GroupNorm(4, 32), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(32, 10),
        )  # fmt: skip

    def mlp() -> Any:
        return nn.Sequential(
            nn.Linear(wide, 2 * wide), nn.ReLU(), nn.Linear(2 * wide, wide), nn.Tanh(), nn.Linear(wide, 10),
            nn.LogSoftmax(-1),
        )  # fmt: skip

    def drawn(*shape: int) -> Callable[[int], Any]:
        return lambda n: torch.randn(*(n if k == 0 else k for k in shape), device=device)

    points = 56 if device == "cuda" else 16
    return {
        "llama": (Llama, lambda n: torch.randn(4, 8 * n if n > 1 else 1, wide, device=device), False),
        "gpt training": (Layer, drawn(0, steps, wide), True),
        "mlp training": (mlp, lambda n: torch.randn(64 * n if n > 1 else 1, wide, device=device), True),
        "conv training": (convolutions, drawn(0, 3, points, points), True),
        "resnet training": (Residual, drawn(0, Residual().a.in_channels, points, points), True),
    }


def run(name: str, backend: str, device: str) -> dict[str, Any]:
    """One model under one backend."""
    import torch

    make, draw, trained = models(device)[name]
    torch.manual_seed(0)
    model = make().to(device)
    call: Any = model
    if backend == "pyarray":
        from pyarray.torch.backend import pyarray  # whether or not the package's entry points are installed

        call = torch.compile(model, backend=pyarray, dynamic=True)
    elif backend != "eager":
        call = torch.compile(model, backend=backend, dynamic=True)
    inputs = {n: draw(n) for n in SIZES}

    def step(function: Any, n: int) -> Any:
        if not trained:
            with torch.no_grad():
                return function(inputs[n])
        model.zero_grad()
        y = function(inputs[n])
        (y * y).mean().backward()
        return y

    def finished() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    counts = []
    start = finished()
    for n in SIZES:
        step(call, n)
        counts.append(_compiles(backend))
    first = finished() - start
    passes = []
    for _ in range(7):
        start = finished()
        for n in SIZES:
            step(call, n)
        passes.append(finished() - start)
    worst = 0.0
    for n in SIZES[:4]:
        model.eval()
        with torch.no_grad():
            theirs = model(inputs[n])
            ours = call(inputs[n])
        model.train()
        worst = max(worst, float((ours - theirs).abs().max() / theirs.abs().max()))
    return {
        "first": first, "steady": statistics.median(passes), "least": min(passes), "off": worst,
        "compiles": counts[0], "later": counts[-1] - counts[0],
    }  # fmt: skip


def _compiles(backend: str) -> int:
    if backend != "pyarray":
        return 0
    from pyarray.torch.fused_kernel import compiles

    return compiles()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only")
    parser.add_argument("--one", nargs=2)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run(*args.one, args.device)))
        return
    for name in models("cpu"):
        if args.only and args.only not in name:
            continue
        results: dict[str, Any] = {}
        for backend in BACKENDS:
            with tempfile.TemporaryDirectory() as folder:
                own = {"PYARRAY_CACHE_DIR": folder + "/p", "TORCHINDUCTOR_CACHE_DIR": folder + "/i"}
                command = [
                    sys.executable,
                    "-m",
                    "bench.torch_models",
                    "--device",
                    args.device,
                    "--one",
                    name,
                    backend,
                ]
                done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{name} {backend}: {done.stderr.strip().splitlines()[-1]}", flush=True)
                continue
            results[backend] = json.loads(done.stdout.strip().splitlines()[-1])
        for backend, row in results.items():
            print(
                f"{name:16} {backend:9} first pass {row['first']:7.2f} s  "
                f"steady {1e3 * row['steady']:8.2f} ms (least {1e3 * row['least']:8.2f})  "
                f"off {row['off']:.1e}  compiles {row['compiles']}, later {row['later']}",
                flush=True,
            )
        if {"inductor", "pyarray"} <= results.keys():
            theirs, ours = results["inductor"], results["pyarray"]
            steady, total = theirs["steady"] / ours["steady"], theirs["first"] / ours["first"]
            print(f"{name:16} inductor / pyarray: steady {steady:.2f}, first pass {total:.2f}", flush=True)


if __name__ == "__main__":
    main()
