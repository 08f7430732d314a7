"""RawKernel and RawModule: HIP and CUDA C++ with the caller's grid, on every device."""

import os
from pathlib import Path

import numpy as np
import pytest

import pyarray as pa
from pyarray.kernels.cpp.raw_signature import parameters

TEXT = r"""
#define TILE 64
/* rotates a block's elements by one, through shared memory */
extern "C" __global__ void rotate(const float *x, float *y, int n)
{
    __shared__ float tile[TILE];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tile[threadIdx.x] = x[i];
    __syncthreads();
    const int size = min((int)blockDim.x, n - (int)(blockIdx.x * blockDim.x));
    if (i < n) y[i] = tile[(threadIdx.x + 1) % size];
}

extern "C" __global__ void sums(const int *x, int *total, unsigned int n)
{
    extern __shared__ int part[];
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(total, part[0]);
}

extern "C" __global__ void places(int *out)
{
    const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * (blockDim.x * blockDim.y * blockDim.z) + thread] = block * 1000 + thread;
}

extern "C" __global__ void numbers(double *out, bool a, signed char b, unsigned short c, int d, long long e,
                                   float f, double g, float2 h, double2 k, unsigned long long l)
{
    const double all[] = {(double)a, (double)b, (double)c, (double)d, (double)e, f, g,
                          h.x, h.y, k.x, k.y, (double)l};
    for (int i = 0; i < 12; ++i) out[i] = all[i];
}
"""
MODULE = pa.RawModule(code=TEXT)


def up(x, device):
    return pa.asarray(np.array(x), device=device)


def test_shared_memory_and_barriers(device):
    x = np.arange(150, dtype=np.float32)
    y = up(np.zeros(150, np.float32), device)
    MODULE.get_function("rotate")((3,), (64,), (up(x, device), y, 150))
    expected = np.concatenate([np.roll(part, -1) for part in (x[:64], x[64:128], x[128:])])
    assert np.array_equal(pa.asnumpy(y), expected)


def test_dynamic_shared_memory_and_atomics(device):
    x, total = np.arange(1000, dtype=np.int32), up(np.zeros(1, np.int32), device)
    MODULE.get_function("sums")(8, 128, (up(x, device), total, 1000), shared_mem=128 * 4)
    assert total.item() == x.sum()


def test_grids_and_blocks_of_three_axes(device):
    out = up(np.zeros(2 * 3 * 2 * 4 * 2 * 3, np.int32), device)
    MODULE.get_function("places")((2, 3, 2), (4, 2, 3), (out,))
    assert np.array_equal(pa.asnumpy(out), [b * 1000 + t for b in range(12) for t in range(24)])


def test_numbers_take_the_types_of_the_parameters(device):
    numbers, out = MODULE.get_function("numbers"), up(np.zeros(12), device)
    numbers(1, 1, (out, True, -3, 65535, -7, 1 << 40, 0.5, 0.1, 1 + 2j, 3 - 4j, (1 << 63) + 2048))
    expected = [1, -3, 65535, -7, 1 << 40, 0.5, 0.1, 1, 2, 3, -4, (1 << 63) + 2048]
    assert out.tolist() == expected
    numpys = [
        np.bool_(True), np.int8(-3), np.uint16(65535), np.int32(-7), np.int64(1 << 40), np.float32(0.5),
        np.float64(0.1), np.complex64(1 + 2j), np.array([3 - 4j]), np.uint64((1 << 63) + 2048),
    ]  # fmt: skip
    numbers(1, 1, (out, *numpys))
    assert out.tolist() == expected


def test_numbers_of_a_parameter_list_that_cant_be_read_are_passed_as_cupy_does(device):
    code = "#define PARAMETERS double *out, long long a, double b, bool c, int d, float e\n"
    code += 'extern "C" __global__ void hidden(PARAMETERS)'
    code += "{ out[0] = a; out[1] = b; out[2] = c; out[3] = d; out[4] = e; }"
    out = up(np.zeros(5), device)
    pa.RawKernel(code, "hidden")(1, 1, (out, -5, 0.5, True, np.int32(7), np.float32(0.25)))
    assert out.tolist() == [-5, 0.5, 1, 7, 0.25]


def test_views_pass_the_address_of_their_first_element(device):
    x, y = up(np.arange(20, dtype=np.float32), device), up(np.zeros(20, np.float32), device)
    MODULE.get_function("rotate")(1, 64, (x[4:9], y[10:], 5))
    assert pa.asnumpy(y)[10:15].tolist() == [5, 6, 7, 8, 4]


def test_types_of_the_headers(device):
    code = """
#include "pa_cpp.h"
extern "C" __global__ void mixed(complex<float> *z, const float16 *h, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x) z[i] = z[i] * complex<float>(0, 1) + (float)h[i];
}
"""
    z, h = np.array([1 + 2j, 3, 1j], np.complex64), np.array([1, 2, 3], np.float16)
    a = up(z, device)
    pa.RawKernel(code, "mixed")(1, 2, (a, up(h, device), 3))
    assert np.array_equal(pa.asnumpy(a), z * 1j + h)


def test_options_define(device):
    code = 'extern "C" __global__ void fill(int *x) { x[threadIdx.x] = VALUE; }'
    x = up(np.zeros(3, np.int32), device)
    pa.RawKernel(code, "fill", options=("-DVALUE=7",))(1, 3, (x,))
    assert x.tolist() == [7, 7, 7]


def test_stacks_are_given_back():
    """A launch on the CPU takes address space for a block's stacks."""

    def pages():
        return int(Path("/proc/self/statm").read_text().split()[0])

    x = np.zeros(1024, np.int32)
    code = 'extern "C" __global__ void meet(int *x) { x[threadIdx.x] = 1; __syncthreads(); }'
    meet = pa.RawKernel(code, "meet")
    meet(1, 1024, (x,))
    before = pages()
    for _ in range(20):
        meet(1, 1024, (x,))
    assert (x == 1).all()
    assert (pages() - before) * os.sysconf("SC_PAGESIZE") < 64 << 20  # of one launch


def test_what_is_kept_of_launches_is_bounded(device, monkeypatch):
    text = 'extern "C" __global__ void grids(int *x) { atomicAdd(x, 1); }'
    kernel, x = pa.RawKernel(text, "grids"), pa.zeros(1, dtype="int32", device=device)
    monkeypatch.setattr(kernel._kernel.plans, "most", 3)
    for n in (1, 2, 3, 4, 5, 1):
        kernel((n,), (1,), (x,))
    assert x.item() == 16
    assert len(kernel._kernel.plans) == 3


def test_too_large_a_grid_or_block(device):
    kernel, x = MODULE.get_function("places"), up(np.zeros(1, np.int32), device)
    facts = x.device.driver.properties()
    most, sides = facts["block_threads"], facts["block_sides"]
    with pytest.raises(
        ValueError, match=rf"places\(\): block \({most}, 2, 1\) has {2 * most} threads, and {device} takes"
    ):
        kernel(1, (most, 2), (x,))
    with pytest.raises(ValueError, match=rf"block .* is too large for {device}: at most"):
        kernel(1, (1, 1, sides[2] + 1), (x,))
    with pytest.raises(ValueError, match=rf"grid .* is too large for {device}: at most"):
        kernel((1, facts["grid_sides"][1] + 1), 1, (x,))
    with pytest.raises(ValueError, match=r"shared_mem is 0 to \d+ bytes"):
        kernel(1, 1, (x,), shared_mem=facts["shared_bytes"] + 1)
    for grid, block in (((), 1), (0, 1), (1, (1, 1, 1, 1)), (1, -1)):
        with pytest.raises(ValueError, match="one to three sizes of at least 1"):
            kernel(grid, block, (x,))
    with pytest.raises(TypeError, match="an int or up to three of them"):
        kernel("a", 1, (x,))
    kernel(1, 1, (x,))  # the device is as good as before
    assert x.tolist() == [0]


def test_arguments_that_dont_fit(device):
    kernel, x = MODULE.get_function("rotate"), up(np.zeros(3, np.float32), device)
    listed = r"rotate\(\) takes 3 arguments \(const float \*x, float \*y, int n\), got 2"
    for args, error, words in [
        ((x, x), TypeError, listed),
        ((x, 1, 3), TypeError, r"argument 1 \(float \*y\) is an address in the kernel, got 1; pass an array"),
        ((x, x, x), TypeError, r"argument 2 \(int n\) is a number in the kernel, got an array of float32"),
        ((x, x, 1.5), TypeError, r"argument 2 \(int n\) is an integer in the kernel, got 1.5"),
        ((x, x, 1 << 31), OverflowError, r"out of range for int32"),
        ((x, x, "3"), TypeError, "must be an array or a number, got str"),
        ((x, np.zeros(1, [("a", "i4")]), 1), TypeError, "is a structure"),
        (x, TypeError, "args is a tuple"),
    ]:
        with pytest.raises(error, match=words):
            kernel(1, 1, args)
    if device != "cpu":
        with pytest.raises(ValueError, match=rf"'x' on {device}, 'y' on cpu"):
            kernel(1, 1, (x, up(np.zeros(3, np.float32), "cpu"), 3))


def test_what_the_compiler_says_has_the_users_lines(device):
    kernel = pa.RawKernel('extern "C" __global__ void wrong(int *x)\n{\n    x[0] = nothing;\n}', "wrong")
    with pytest.raises(pa.CompileError, match=r"wrong: code[:(]3"):
        kernel(1, 1, (up(np.zeros(1, np.int32), device),))


def test_what_isnt_there():
    with pytest.raises(pa.CompileError, match=r'no kernel \'other\' in the text; it must say: extern "C" __global__'):
        MODULE.get_function("other")
    with pytest.raises(ValueError, match="backend is one of 'nvrtc', 'hiprtc', got 'nvcc'"):
        pa.RawKernel(TEXT, "rotate", backend="nvcc")
    with pytest.raises(ValueError, match="jitify=True isn't supported"):
        pa.RawKernel(TEXT, "rotate", jitify=True)
    with pytest.raises(ValueError, match="name_expressions"):
        pa.RawModule(code=TEXT, name_expressions=["f<int>"])
    with pytest.raises(TypeError, match="RawModule needs its text"):
        pa.RawModule()


def test_launches_are_observed_and_not_replayed(device, tmp_path):
    x, y = up(np.arange(3, dtype=np.float32), device), up(np.zeros(3, np.float32), device)
    with pa.dump(tmp_path):
        MODULE.get_function("rotate")(1, 64, (x, y, 3))
    (launch,) = pa.load_dump(tmp_path)
    assert launch.args["y"].after.tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="a RawKernel's grid isn't recorded"):
        launch.replay(device)


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ("", []),
        ("void", []),
        ("const float *__restrict__ x, int n", [("x", True, None), ("n", False, "int32")]),
        ("unsigned long long int k, const unsigned a[]", [("k", False, None), ("a", True, None)]),
        ("thrust::complex<float> z, box<int, 3> b", [("z", False, "complex64"), ("b", False, None)]),
        ("MACRO x", None),
        ("int x = 3", None),
    ],
)
def test_parameter_lists(listed, expected):
    code = f'#define MACRO int\n// f(1)\nextern "C" __global__ void\n__launch_bounds__(64) f({listed}) {{ }}'
    found = parameters(code, "f")
    if expected is None:
        assert found is None
    else:
        assert [(p.name, p.address, p.dtype and p.dtype.name) for p in found] == expected
