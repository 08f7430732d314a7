"""Cost model of matrix products: predicts whether this library or torch is faster."""

from __future__ import annotations

from typing import NamedTuple

import torch


class ProductProblem(NamedTuple):
    """A product in the call that was traced: (`batch`, `m`, `k`) by (`batch`, `k`, `n`), and how many
    pointwise operators it computes besides, its own bias among them. `threads` are torch's on a CPU."""

    device: torch.device
    dtype: torch.dtype
    batch: int
    m: int
    n: int
    k: int
    steps: int
    threads: int = 1


class Rate(NamedTuple):
    """Microseconds of a call that computes nothing, and multiply-adds per microsecond: ours and torch's; then
    microseconds per element of the result, which matter where sums are short."""

    our_call: float
    torch_call: float
    ours: float
    torch: float
    our_result: float = 0.0
    torch_result: float = 0.0


FUSED = 4.0  # microseconds of the kernel for what is behind a product of torch's

# Beside torch 2.13 on x86-64 with AVX-512. Two threads, 32 to 384 rows and columns: torch's own are ahead
# from about 70 (float32, float64) and 140 (bfloat16, whose calls cost it more) on, and never in float16.
CPU = {
    torch.float32: Rate(2.0, 4.5, 50e3, 90e3),
    torch.float64: Rate(2.0, 4.5, 24e3, 32e3),
    torch.bfloat16: Rate(2.0, 19.0, 80e3, 150e3),
    torch.float16: Rate(2.0, 19.0, 40e3, 9e3),
}
# Where torch has one thread; 48 to 1024 rows and columns, and long ones. Processors differ: of two with
# AVX-512, torch's own are a fifth faster on one and a little slower on the other. These are of the former.
ONE_THREAD = CPU | {
    torch.float32: Rate(2.0, 4.5, 70e3, 86e3, 0.25e-3, 0.17e-3),  # results: 2048 by 128, of 10 to 64 terms
    torch.float64: Rate(2.0, 4.5, 36e3, 42e3),
    torch.bfloat16: Rate(2.0, 15.0, 90e3, 107e3),
}
# Whatever the threads, where the processor has AMX, and with it arithmetic of halves.
AMX = {
    torch.bfloat16: Rate(2.0, 15.0, 73e3, 600e3),
    torch.float16: Rate(2.0, 15.0, 70e3, 86e3),
}
# An H100 at 4096 rows and columns, and at 4095, 4097 and 4099, beside torch 2.11: rows of odd lengths aren't
# aligned for cuBLAS, while ours are copied to aligned ones. Other types and sizes are faster there.
CUDA_ODD = {torch.bfloat16: Rate(20.0, 6.0, 140e6, 74e6)}


def choose(problem: ProductProblem) -> tuple[bool, str]:
    """Whether this library computes a product, and why: only what was measured to be faster."""
    rate = _rate(problem)
    if rate is None:
        return False, f"torch's products of {problem.dtype} are faster on such a device, at such sizes"
    results = problem.batch * problem.m * problem.n
    work = results * problem.k
    our_time = rate.our_call + work / rate.ours + results * rate.our_result
    torch_time = rate.torch_call + work / rate.torch + results * rate.torch_result
    if problem.device.type == "cpu":  # elsewhere the epilogue is a kernel of its own, too
        torch_time += FUSED * (problem.steps > 0)
    why = f"predicted {our_time:.3g} us here, {torch_time:.3g} us by torch, at the sizes of the first call"
    return our_time < torch_time, why


def _rate(problem: ProductProblem) -> Rate | None:
    if problem.device.type == "cpu":
        table = CPU if problem.threads > 1 else ONE_THREAD
        return (table | AMX if torch.cpu._is_amx_tile_supported() else table).get(problem.dtype)
    odd = problem.n % 2 and problem.k % 2
    return CUDA_ODD.get(problem.dtype) if odd and torch.version.hip is None else None
