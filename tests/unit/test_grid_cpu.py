"""pa_grid_cpu.h: grids of CUDA and HIP C++ on a CPU, with warps of 32 and 64 lanes."""

import ctypes
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest

from pyarray.driver.cc import CPP, toolchain

KERNELS = """
#include "pa_grid_cpu.h"
extern __shared__ double everywhere[];
extern "C" __global__ void places(int *out)
{
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}
struct odd { char c; double d; short s; };
extern "C" __global__ void arguments(char a, double b, odd c, int3 d, float4 e, double *out)
{
    const double all[] = {(double)a, b, (double)c.c, c.d, (double)c.s, (double)d.z, e.w};
    for (int k = 0; k < 7; ++k) out[k] = all[k];
}
extern "C" __global__ void shuffles(long long *out)
{
    const int t = threadIdx.x;
    const long long x = (long long)t << 33;
    long long *mine = out + 6 * t;
    mine[0] = __shfl(x, 3) >> 33;
    mine[1] = __shfl_up(x, 2, 8) >> 33;
    mine[2] = __shfl_down(x, 2, 16) >> 33;
    mine[3] = __shfl_xor_sync(0xffffffffffffffffull, x, 5) >> 33;
    mine[4] = __popcll(__ballot(t % 3 == 0)) + 100 * __any(t == 1) + 1000 * __all(t < 40);
    mine[5] = __reduce_add_sync(~0ull, t) * 100 + __reduce_max_sync(~0ull, t);
}
extern "C" __global__ void diverge(int *out)
{
    int t = threadIdx.x, sum = 0;
    for (int k = 0; k < t % 4; ++k) sum += __popcll(__activemask());
    __syncwarp();
    out[t] = sum * 1000 + __popcll(__activemask());
}
extern "C" __global__ void votes(int *out)
{
    const int n = __syncthreads_count(threadIdx.x % 5 == 0);
    const int some = __syncthreads_or(threadIdx.x == 7), all = __syncthreads_and(threadIdx.x < 9);
    out[threadIdx.x] = n + 1000 * some + 2000 * all;
}
extern "C" __global__ void atomics(int *i, unsigned long long *u, float *f, double *d)
{
    __shared__ unsigned turn;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    atomicAdd(i, 1);
    atomicMin(i + 1, -(int)threadIdx.x);
    atomicMax(i + 2, (int)threadIdx.x);
    atomicInc(&turn, 6);
    atomicOr(u, 1ull << threadIdx.x % 64);
    atomicAdd(f, 1);
    atomicAdd(d, 0.5);
    __syncthreads();
    if (threadIdx.x == 0) i[3] = turn;
}
extern "C" __global__ void numbers(double *out)
{
    const double all[] = {sin(1), pow(2.0f, 3), fma(2.0f, 3.0f, 4.0f), max(3, 2.5f), min(-1, 2u) == 2u,
                          abs(-2.5), (double)__clz(1), (double)__ffs(8), (double)__brev(1), rsqrtf(4),
                          (double)__float_as_int(1.0f), (double)__umulhi(1u << 31, 6),
                          (double)__byte_perm(0x04030201, 0x08070605, 0x7531), isnan(sqrt(-1.0))};
    for (int k = 0; k < 14; ++k) out[k] = all[k];
}
template <int N> __global__ void dynamic(double *out)
{
    everywhere[threadIdx.x] = threadIdx.x * N;
    __syncthreads();
    out[threadIdx.x] = everywhere[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void stop(int n) { assert(n == 0); __syncthreads(); }
PA_GRID_DYNAMIC(everywhere)
PA_GRID_ENTRY(three, dynamic<3>)
"""
NAMES = ["places", "arguments", "shuffles", "diverge", "votes", "atomics", "numbers", "stop"]


class Launch(ctypes.Structure):
    """pa_grid_launch."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        *((name, ctypes.c_uint32) for name in ("shared", "warp", "backwards")),
        *((name, ctypes.c_int64) for name in ("first", "count")),
        ("params", ctypes.c_void_p),
        ("buffer", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("stacks", ctypes.c_void_p),
        ("error", ctypes.c_char_p),
    ]


@pytest.fixture(scope="module")
def library():
    text = KERNELS + "".join(f"PA_GRID_ENTRY({name}, {name})\n" for name in NAMES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernels.so")
        path.write_bytes(toolchain().compile(text, (*CPP, "-Wl,-Bsymbolic")))
        return ctypes.CDLL(str(path))


@pytest.fixture(params=[(32, 0), (64, 0), (64, 1)], ids=str)
def run(request, library):
    """Launches a kernel; returns its error. Warps and the order of threads are the case's."""
    warp, backwards = request.param
    stacks = ctypes.c_void_p()

    def launch(name, *args, form, grid=(1, 1, 1), block=(1, 1, 1), shared=0):
        packed = struct.pack(form, *args)
        blocks, place = grid[0] * grid[1] * grid[2], ctypes.addressof(stacks)
        call = Launch(grid, block, shared, warp, backwards, 0, blocks, None, packed, len(packed), place, None)
        code = getattr(library, f"pa_grid_{name}")(ctypes.byref(call))
        assert code == (call.error is not None)
        return call.error

    launch.warp = warp
    return launch


def at(array):
    return array.ctypes.data


def test_places_and_blocks(run):
    out = np.zeros(24 * 30, np.int32)
    assert run("places", at(out), form="P", grid=(2, 3, 4), block=(5, 3, 2)) is None
    assert out.tolist() == [b * 1000 + t for b in range(24) for t in range(30)]


def test_arguments_stand_at_their_natural_alignment(run):
    out = np.zeros(7)
    form = "bd bdh0d iii12x ffff P"
    assert run("arguments", 1, 2.5, 3, 4.5, 5, 0, 0, 6, 0, 0, 0, 7.5, at(out), form=form) is None
    assert out.tolist() == [1, 2.5, 3, 4.5, 5, 6, 7.5]


def test_shuffles(run):
    n = 64
    out = np.zeros((n, 6), np.int64)
    assert run("shuffles", at(out), form="P", block=(n, 1, 1)) is None
    t = np.arange(n)
    low = t // run.warp * run.warp
    assert (out[:, 0] == low + 3).all()
    assert (out[:, 1] == np.where(t % 8 < 2, t, t - 2)).all()
    assert (out[:, 2] == np.where(t % 16 >= 14, t, t + 2)).all()
    assert (out[:, 3] == t ^ 5).all()
    warps = t.reshape(-1, run.warp)
    thirds, ones = (warps % 3 == 0).sum(1), (warps == 1).any(1)
    assert (out[:, 4] == (thirds + 100 * ones + 1000 * (warps < 40).all(1)).repeat(run.warp)).all()
    assert (out[:, 5] == (warps.sum(1) * 100 + warps.max(1)).repeat(run.warp)).all()


def test_lanes_that_left_a_loop_wait_for_the_others(run):
    out = np.zeros(64, np.int32)
    assert run("diverge", at(out), form="P", block=(64, 1, 1)) is None
    turns = [sum(3 - k for k in range(t % 4)) * run.warp // 4 for t in range(64)]
    assert out.tolist() == [n * 1000 + run.warp for n in turns]


def test_votes_of_a_block(run):
    out = np.zeros(100, np.int32)
    assert run("votes", at(out), form="P", block=(100, 1, 1)) is None
    assert set(out) == {20 + 1000}


def test_atomics(run):
    i, u, f, d = np.zeros(4, np.int32), np.zeros(1, np.uint64), np.zeros(1, np.float32), np.zeros(1)
    assert run("atomics", at(i), at(u), at(f), at(d), form="PPPP", grid=(3, 1, 1), block=(128, 1, 1)) is None
    assert i.tolist() == [384, -127, 127, 128 % 7]
    assert (u[0], f[0], d[0]) == (2**64 - 1, 384, 192)


def test_numeric_functions(run):
    out = np.zeros(14)
    assert run("numbers", at(out), form="P") is None
    bits = [31, 4, 2.0**31, 0.5, 0x3F800000, 3, 0x08060402, 1]
    assert out.tolist() == [np.sin(1), 8, 10, 3, 1, 2.5, *bits]


def test_dynamic_shared_memory_of_a_template(run):
    out = np.zeros(8)
    assert run("three", at(out), form="P", block=(8, 1, 1), shared=64) is None
    assert out.tolist() == [3.0 * t for t in range(7, -1, -1)]


def test_what_ends_a_launch(run):
    assert b"assertion" in run("stop", 1, form="i", block=(8, 1, 1))
    assert run("stop", 0, form="i", block=(8, 1, 1)) is None
    assert b"1 to 1024 threads" in run("stop", 0, form="i", block=(1025, 1, 1))
    assert b"64 KiB" in run("stop", 0, form="i", shared=1 << 20)
    assert b"too few bytes" in run("stop", form="")
