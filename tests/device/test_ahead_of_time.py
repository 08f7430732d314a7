"""Kernels compiled ahead: types in, files out, launches elsewhere."""

import dataclasses
import json
import logging
import os
import subprocess
import sys
import textwrap
import typing

import numpy as np
import pytest

import pyarray as pa
from pyarray.driver import cc, get_device, nvrtc
from pyarray.driver.base import devices
from pyarray.errors import DeviceError
from pyarray.jit import ahead_of_time


@dataclasses.dataclass
class Grid:
    v: pa.ndarray[pa.float32, 2]
    h: float


class Pair(typing.NamedTuple):
    low: pa.int64
    high: pa.BufferView[pa.int64]


def axpy():
    @pa.kernel
    def axpy(y: pa.ndarray[pa.float32, 1], x: pa.ndarray[pa.float32, 1], a: float = 2.0, n: pa.constexpr = 1):
        for i in range(y.size):
            y[i] = y[i] + a * x[i] + n

    return axpy


def plain():
    @pa.kernel
    def plain(out, v, s):
        for i in range(out.size):
            out[i] = v[i] * s

    return plain


def target_of(device):
    """The target that the device's binaries have."""
    place = get_device(device)
    return "cpu" if place.kind == "cpu" else place.driver.target()


def on(device, values, dtype=np.float32):
    return pa.asarray(np.array(values, dtype), device=device)


# ---- and launched


@pytest.mark.slow
def test_annotations_are_types(device, tmp_path):
    k = axpy()
    saved = k.compile(target=target_of(device))
    assert k.cache_info()["variants"] == 0
    saved.save(tmp_path / "axpy")
    for again in (saved, pa.load_kernel(tmp_path / "axpy")):
        y, x = on(device, [1, 2, 3]), on(device, range(6))
        again(y, x[:3])
        assert y.tolist() == [2, 5, 8]
        again(y, x[::-2], 1)
        assert y.tolist() == [8, 9, 10]
        again(on(device, range(6))[::2], x[:3], a=1)
        with pytest.raises(TypeError, match=r"no variant for y: 1-D contiguous array of float32, .* n: int"):
            again(y, x[:3], n=2)
    assert os.stat(tmp_path / "axpy").st_mode & 0o777 == 0o644


@pytest.mark.slow
def test_each_mix_of_layouts_has_a_variant(device):
    @pa.kernel
    def add(out, v):
        for i, j in pa.ndrange(out.shape[0], out.shape[1]):
            out[i, j] = v[j]

    saved = add.compile(pa.ndarray[pa.float32, 2], pa.ndarray[pa.float32, 1], target=target_of(device))
    layouts = [[leaf["layout"] for leaf in v["leaves"]] for v in saved.manifest()["variants"]]
    assert layouts == [["contiguous"] * 2, ["strided"] * 2]
    for out in (on(device, np.zeros((2, 3))), on(device, np.zeros((3, 2))).T, on(device, np.zeros((4, 6)))[::2, ::2]):
        for v in (on(device, [1, 2, 3]), on(device, [1, 0, 2, 0, 3])[::2], on(device, [3, 2, 1])[::-1]):
            saved(out, v)
            assert out.tolist() == [[1, 2, 3]] * 2
            out[...] = 0


def test_structures_are_made_from_their_fields(device):
    @pa.kernel
    def fill(out: pa.ndarray[pa.float32, 2], g: Grid, p: Pair, t: tuple[int, pa.BufferView[pa.float32]]):
        for i, j in pa.ndrange(out.shape[0], out.shape[1]):
            out[i, j] = g.v[i, j] * g.h + p.low + p.high[i] + t[0] + t[1][j]

    saved = fill.compile(target=target_of(device))
    out, high = on(device, np.zeros((2, 3))), on(device, [10, 20], np.int64)
    saved(out, Grid(on(device, np.ones((3, 2))).T, 2.0), Pair(100, high), (1000, on(device, [1, 2, 3])))
    assert out.tolist() == [[1113, 1114, 1115], [1123, 1124, 1125]]


@pytest.mark.slow
def test_types_of_numbers(device):
    k, n = plain(), 3
    for given, dtype in (
        (int, "int64"),
        (float, "float64"),
        (pa.float32, "float32"),
        (np.int16, "int16"),
        (True, "bool"),
    ):
        saved = k.compile(pa.BufferView[pa.float64], pa.BufferView[pa.float64], given, target=target_of(device))
        (variant,) = saved.manifest()["variants"]
        assert variant["leaves"][2]["dtype"] == dtype
    out = pa.zeros(n, device=device)
    saved(out, pa.ones(n, device=device), True)
    assert out.tolist() == [1, 1, 1]


def test_arguments_are_types_too(device):
    k = plain()
    out, v = (pa.empty(4, dtype=pa.float32, device="null:0") for _ in range(2))
    saved = k.compile(out, v.mark_static(), s=np.float32(3), target=target_of(device))
    (variant,) = saved.manifest()["variants"]
    assert variant["leaves"][1]["pins"] == [{"axis": 0, "size": 4, "stride": 4, "multiple": 1}]
    host = k.compile(np.zeros(4, np.float32), np.zeros(8, np.float32)[::2], 2, target=target_of(device))
    assert [leaf.get("layout") for leaf in host.manifest()["variants"][0]["leaves"]] == ["contiguous", "strided", None]
    there = on(device, [0, 0, 0, 0])
    saved(there, on(device, [1, 2, 3, 4]).mark_static(), np.float32(2))
    assert there.tolist() == [2, 4, 6, 8]
    with pytest.raises(TypeError, match="no variant"):
        saved(there, on(device, [1, 2, 3, 4]), np.float32(2))


@pytest.mark.slow
def test_with_bounds_checks(device):
    @pa.kernel
    def shift(out: pa.BufferView[pa.float32], v: pa.BufferView[pa.float32]):
        for i in range(out.size):
            out[i] = v[i + 1]

    saved = shift.compile(target=target_of(device), debug=True)
    with pa.debug(), pytest.raises(pa.BoundsError, match="tid=2") as caught:
        saved(on(device, [0, 0, 0]), on(device, [1, 2, 3]))
    assert "shift" in str(caught.value)
    with pytest.raises(TypeError, match="has no variant for"):
        saved(on(device, [0, 0, 0]), on(device, [1, 2, 3, 4]))
    always = pa.kernel(debug=True)(shift)
    with pytest.raises(pa.BoundsError):
        always.compile(target=target_of(device))(on(device, [0, 0, 0]), on(device, [1, 2, 3]))
    with pytest.raises(ValueError, match="'shift' is always with bounds checks; leave debug out"):
        always.compile(target=target_of(device), debug=False)


@pytest.mark.slow
def test_it_does_what_the_kernel_does(device):
    rng = np.random.default_rng(5)
    values = [rng.random((40, 30)).astype(np.float32) for _ in range(2)]

    @pa.kernel(threads=64)
    def mixed(out: pa.ndarray[pa.float32, 2], v: pa.ndarray[pa.float32, 2]):
        for i in range(out.shape[0]):
            s = pa.float32(0)
            for j in pa.unordered(range(v.shape[1])):
                s += v[i, j]
            for j in pa.unordered(range(v.shape[1])):
                out[i, j] = v[i, j] / s
        for i, j in pa.ndrange(out.shape[0], out.shape[1]):
            out[i, j] = pa.sqrt(out[i, j]) + pa.exp(v[i, j])

    native = "cpu:native" if device == "cpu" else target_of(device)  # other instructions may change exp's last bit
    for target, rtol in ((native, 0), (target_of(device), 1e-6)):
        saved = mixed.compile(target=target)
        for view in (np.s_[:, :], np.s_[::2, ::-1]):
            results = []
            for run in (mixed, saved):
                out, v = (on(device, x)[view] for x in values)
                run(out, v)
                results.append(pa.asnumpy(out))
            np.testing.assert_allclose(*results, rtol=rtol)


# ---- declared


def test_types_of_the_decorator(device):
    k = plain()
    named = {"out": pa.BufferView[pa.int64], "v": pa.BufferView[pa.int64], "s": 2}
    k = pa.kernel(types=[(pa.BufferView[pa.float32],) * 2 + (float,), named])(k)
    saved = k.compile(target=target_of(device))
    assert len(saved.manifest()["variants"]) == 2
    for dtype in (np.float32, np.int64):
        out = on(device, [0, 0], dtype)
        saved(out, on(device, [1, 2], dtype), 3 if dtype is np.int64 else 3.0)
        assert out.tolist() == [3, 6]
    k(out, on(device, [1, 2], np.int64), 5)  # launches are as before
    assert out.tolist() == [5, 10]
    one = k.compile(pa.BufferView[pa.int8], pa.BufferView[pa.int8], 2, target=target_of(device))
    assert len(one.manifest()["variants"]) == 1  # what is given goes before what is declared


@pytest.mark.parametrize("wrong", [3, "float32", {"v": 1}, [pa.float32], [(pa.float32,), 3]])
def test_wrong_types_of_the_decorator(wrong):
    with pytest.raises(TypeError, match=r"types of a kernel is a list of tuples"):
        pa.kernel(types=wrong)(plain())


def test_equal_signatures_are_compiled_once(monkeypatch):
    k = pa.kernel(types=[(pa.BufferView[pa.float32],) * 3, (pa.BufferView[pa.float32],) * 3])(plain())
    monkeypatch.setattr(ahead_of_time, "_compiled", lambda kernel, checked, target, *_: target)
    monkeypatch.setattr(ahead_of_time, "file_of", lambda kernel, variants, constants: variants)
    monkeypatch.setattr(ahead_of_time.saved, "kernel_of", lambda variants, path: variants)
    with pytest.raises(pa.CompileError):  # arrays can't be multiplied
        k.compile(target="cpu")
    k = pa.kernel(types=[(pa.BufferView[pa.float32],) * 2 + (1,), (pa.BufferView[pa.float32],) * 2 + (2,)])(plain())
    assert [t.name for t in k.compile(target=["cpu", "sm_90", "cpu"])] == ["cpu", "sm_90"]


# ---- other devices than there are


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_cuda_without_a_gpu(target, tmp_path):
    k = pa.kernel(threads=128, per_thread=2)(axpy())
    saved = k.compile(target=target)
    saved.save(tmp_path / "k")
    facts = json.loads(json.dumps(pa.load_kernel(tmp_path / "k").manifest()))
    assert [v["target"] for v in facts["variants"]] == [target] * 2
    assert {v["entry"] for v in facts["variants"]} == {"kernel_axpy_0=1x2t128"}
    assert all(v["toolchain"].startswith(("nvrtc", "nvcc", "Cuda")) for v in facts["variants"])
    for variant in saved.saved_variants:
        assert variant.binary.startswith(b"\x7fELF")
        assert b"kernel_axpy_0" in variant.binary
    if target_of_cuda() != target:
        with pytest.raises(DeviceError, match=f"was made for cuda {target}, and the arrays are on cpu"):
            saved(pa.zeros(3, dtype=pa.float32), pa.zeros(3, dtype=pa.float32))


def target_of_cuda():
    found = devices("cuda")
    return found[0].driver.target() if found else None


NO_DEVICE = """
import sys, pyarray as pa
from pyarray.driver import base

@pa.kernel
def fill(v: pa.BufferView[pa.float32]):
    for i in range(v.size):
        v[i] = 1

base.KINDS["cuda"], base.KINDS["hip"] = None, None  # who asks for one fails
fill.compile(target="sm_90").save(sys.argv[1])
assert not any(d.kind in ("cuda", "hip") for d in base._drivers)
"""


@pytest.mark.slow
def test_no_device_is_opened(tmp_path):
    (tmp_path / "app.py").write_text(NO_DEVICE)
    command = [sys.executable, str(tmp_path / "app.py"), str(tmp_path / "fill")]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr
    assert pa.load_kernel(tmp_path / "fill").manifest()["variants"][0]["target"] == "sm_90"


def compiled(kernel, target):
    """What the kernel is compiled to, or the refusal of a machine without a compiler for the target."""
    try:
        return kernel.compile(target=target), ""
    except DeviceError as error:
        return None, str(error)


@pytest.mark.slow
def test_nvcc_where_there_is_no_nvrtc(monkeypatch):
    def missing():
        raise DeviceError("NVRTC can't be loaded (gone)")

    monkeypatch.setattr(nvrtc, "version", missing)
    saved, refusal = compiled(axpy(), "sm_90")
    if saved is None:
        assert "NVRTC can't be loaded (gone); there is no nvcc" in refusal
        return
    assert all("release" in v["toolchain"] for v in saved.manifest()["variants"])
    assert all(v.binary.startswith(b"\x7fELF") for v in saved.saved_variants)
    with pytest.raises(pa.CompileError, match="refused the kernel for sm_90"):
        pa.kernel(flags="--no-such-flag")(axpy()).compile(target="sm_90")
    assert "has no target 'sm_999'" in compiled(axpy(), "sm_999")[1]


def test_nothing_compiles_for_it(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setattr(nvrtc, "version", lambda: (_ for _ in ()).throw(DeviceError("no NVRTC")))
    with pytest.raises(
        DeviceError, match=r"nothing here compiles for sm_90: no NVRTC; there is no nvcc, .* Install NVRTC"
    ):
        axpy().compile(target="sm_90")
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    with pytest.raises(
        DeviceError, match=r"nothing here compiles for gfx999: .*; there is no clang\+\+.* Install ROCm"
    ):
        axpy().compile(target="gfx999")


@pytest.mark.slow
def test_a_gpu_that_amds_compilers_may_not_know():
    """It ends hiprtc's process, not this one; clang without its parts says what it lacks."""
    saved, refusal = compiled(axpy(), "gfx942")
    if saved is None:
        assert refusal.startswith("nothing here compiles for gfx942: ")
        assert "Install ROCm" in refusal
    else:
        assert {v["target"] for v in saved.manifest()["variants"]} == {"gfx942"}


@pytest.mark.slow
def test_a_file_of_several_targets(device, tmp_path):
    targets = list(dict.fromkeys(["cpu:native", "cpu", "sm_80", target_of(device)]))
    axpy().compile(target=targets).save(tmp_path / "k")
    k = pa.load_kernel(tmp_path / "k")
    assert len(k.manifest()["variants"]) == 2 * len(targets)
    y = on(device, [1, 2])
    k(y, on(device, [1, 1]))
    assert y.tolist() == [4, 5]


# ---- on CPUs


def test_a_portable_binary_is_taken_without_a_compiler(tmp_path):
    axpy().compile(target="cpu:x86-64" if cc.has_level("x86-64") else "cpu").save(tmp_path / "k")
    program = """
        import sys, numpy as np, pyarray as pa
        y = np.ones(3, np.float32)
        pa.load_kernel(sys.argv[1])(y, np.arange(6, dtype=np.float32)[::2])
        print(y.tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "k")],
        capture_output=True, text=True, env=os.environ | {"PYARRAY_CC": "/nowhere/cc", "PYARRAY_CACHE": "0"},
    )  # fmt: skip
    assert done.stdout == "[2.0, 6.0, 10.0]\n", done.stderr


def test_a_processor_without_the_instructions_compiles_the_text(monkeypatch, caplog):
    saved = axpy().compile(target="cpu")
    monkeypatch.setattr(cc, "has_level", lambda level: False)
    y = pa.ones(3, dtype=pa.float32)
    with caplog.at_level(logging.WARNING, logger="pyarray"):
        saved(y, y)
    assert y.tolist() == [4, 4, 4]
    assert "its text is compiled here" in caplog.text


def test_a_binary_that_cannot_be_loaded_is_compiled_again(caplog):
    saved = axpy().compile(target="cpu:native")
    for variant in saved.saved_variants:
        variant.binary = b"no ELF"
    y = pa.ones(3, dtype=pa.float32)
    with caplog.at_level(logging.WARNING, logger="pyarray"):
        saved(y, y)
    assert y.tolist() == [4, 4, 4]
    assert "can't be loaded" in caplog.text


def test_the_fitting_binary_is_taken(monkeypatch):
    saved = axpy().compile(target=["cpu:x86-64", "cpu:native"] if cc.has_level("x86-64") else ["cpu", "cpu:native"])
    monkeypatch.setattr(cc, "has_level", lambda level: False)
    y = pa.ones(3, dtype=pa.float32)
    found, _ = saved._find({"y": y, "x": y, "a": 1.0, "n": 1})
    assert found.row["machine"] == cc.processor()


# ---- refused


def test_too_little_is_said():
    cases = [
        (plain(), (), "'out' has no annotation; pass a type for each parameter, or declare them: @pa.kernel"),
        (plain(), (pa.ndarray[pa.float32],), r"'out' is ndarray\[float32\], which has no rank; write pa.ndarray"),
        (plain(), (pa.ndarray,), "'out' is .*, which has no dtype"),
        (plain(), (pa.In[pa.ndarray],), "'out' is .*, which has no dtype"),
        (plain(), (pa.float32, 1, 2, 3), r"too many positional arguments; it has the parameters \(out, v, s\)"),
    ]
    for kernel, types, text in cases:
        with pytest.raises(TypeError, match=text):
            kernel.compile(*types, target="cpu")
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'w'"):
        plain().compile(w=1, target="cpu")

    @pa.kernel
    def constant(v: pa.BufferView[pa.int64], n: pa.constexpr):
        for i in range(v.size):
            v[i] = n

    with pytest.raises(TypeError, match="'n' is a constant, whose value is part of the code"):
        constant.compile(target="cpu")
    assert constant.compile(n=4, target="cpu").manifest()["variants"][0]["leaves"][1]["value"] == "int 4"


def test_types_that_do_not_fit():
    with pytest.raises(TypeError, match=r"axpy\(\): 'y' must be a 1-D array of float32, got an array of float64"):
        axpy().compile(pa.ndarray[pa.float64, 1], target="cpu")
    with pytest.raises(TypeError, match=r"'a' must be a number of type float, got complex"):
        axpy().compile(a=complex, target="cpu")
    with pytest.raises(TypeError, match=r"'out' can't be a list"):
        plain().compile([1, 2], 1, 2, target="cpu")

    class Odd:
        def __init__(self):
            self.v = 1

    @dataclasses.dataclass
    class Half:
        v: pa.BufferView[pa.float32]
        w: "nothing"  # noqa: F821

    with pytest.raises(TypeError, match="'out' can't be made from the fields of Half and their types; pass an example"):
        plain().compile(Half, 1, 2, target="cpu")
    with pytest.raises((TypeError, pa.CompileError)):
        plain().compile(Odd, 1, 2, target="cpu")


def test_a_constant_that_cannot_be_written_down():
    @pa.func
    def twice(x):
        return 2 * x

    @pa.kernel
    def plain(v: pa.BufferView[pa.float32], f: pa.constexpr):
        for i in range(v.size):
            v[i] = f(v[i])

    with pytest.raises(TypeError, match="'plain' can't be saved: 'f' was compiled in with <func twice>"):
        plain.compile(f=twice, target="cpu")


def test_what_a_kernel_refuses_is_refused():
    @pa.kernel
    def wrong(v: pa.BufferView[pa.float32]):
        for i in range(v.size):
            v[i] = v.nothing

    with pytest.raises(pa.CompileError, match="has no attribute 'nothing'"):
        wrong.compile(target=["cpu", "sm_90"])


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ("sm_9", ValueError, "unknown target 'sm_9': expected one like 'sm_90'"),
        ("sm_90a", ValueError, "unknown target"),
        ("cuda:0", ValueError, "unknown target"),
        ("cpu:", ValueError, "unknown target"),
        ("cpu:sparc", ValueError, "unknown target .*'cpu:native'"),
        ("gfx9", ValueError, "unknown target"),
        ("null", ValueError, "unknown target"),
        (90, TypeError, "a target is a text like 'sm_90', 'gfx942' or 'cpu', got 90"),
        (None, TypeError, "a target is a text"),
        ([], ValueError, "target is an empty list"),
        (["cpu", 3], TypeError, "a target is a text"),
        ("sm_999", DeviceError, "nothing here compiles for sm_999: NVRTC .* has no target 'sm_999'; it has sm_"),
    ],
)
def test_wrong_targets(target, error, text):
    with pytest.raises(error, match=text):
        axpy().compile(target=target)


def test_run_only(monkeypatch):
    pa.config.set("PYARRAY_RUN_ONLY", True)
    try:
        with pytest.raises(RuntimeError, match="PYARRAY_RUN_ONLY=1 forbids compiling 'axpy' for cpu, sm_90"):
            axpy().compile(target=["cpu", "sm_90"])
    finally:
        pa.config.set("PYARRAY_RUN_ONLY", None)


# ---- tuned


def test_a_tuned_kernel_is_compiled_with_one_config(device, tmp_path):
    configs = [pa.Config(rows=4, threads=64), pa.Config(rows=8, per_thread=2, flags=())]

    @pa.autotune(configs=configs)
    @pa.kernel
    def fill(v: pa.BufferView[pa.int64], rows: pa.constexpr, s: int = 1):
        for i in range(v.size):
            v[i] = rows * s

    fill.compile(target=target_of(device)).save(tmp_path / "first")
    k = pa.load_kernel(tmp_path / "first")
    v = pa.zeros(5, dtype=pa.int64, device=device)
    k(v)
    assert v.tolist() == [4] * 5
    k(v, 3)
    assert v.tolist() == [12] * 5
    second = fill.compile(target=[target_of(device), "sm_80"], config=configs[1])
    second(v, s=2)
    assert v.tolist() == [16] * 5
    assert second.manifest()["variants"][1]["entry"].endswith("x2")
    with pytest.raises(TypeError, match="no variant"):
        second(v, rows=4)
    with pytest.raises(ValueError, match="sets 'row', which is no parameter; did you mean 'rows'"):
        fill.compile(target="cpu", config=pa.Config(row=3))
    with pytest.raises(TypeError, match=r"a candidate is a pa.Config, got 3"):
        fill.compile(target="cpu", config=3)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(None, 3), (3,), (3, None), (1,), (None, 1), (1, 1), (2, None, 2)])
def test_declared_sizes(device, tmp_path, shape):
    def first(x):
        for _ in range(1):
            if x.ndim == 1:
                x[0] *= 2
            elif x.ndim == 2:
                x[0, 0] *= 2
            else:
                x[0, 0, 0] *= 2

    first.__annotations__ = {"x": pa.ndarray[pa.float32, shape]}
    pa.kernel(first).compile(target=target_of(device)).save(tmp_path / "first")
    saved = pa.load_kernel(tmp_path / "first")
    full = tuple(4 if n is None else n for n in shape)
    plain = pa.ones(full, dtype=pa.float32, device=device)
    steps = pa.ones(tuple(2 * n for n in full), dtype=pa.float32, device=device)[(slice(None, None, 2),) * len(full)]
    for x in (plain, steps):
        saved(x)
        assert pa.asnumpy(x).sum() == x.size + 1
    with pytest.raises(TypeError, match="has no variant"):
        saved(pa.ones(tuple(n + 1 for n in full), dtype=pa.float32, device=device))


@dataclasses.dataclass
class Mode:
    gain: float
    name: str = "sum"


def test_fields_that_are_compiled_in_have_their_defaults(device):
    @pa.kernel
    def named(out: pa.ndarray[pa.float64, 1], mode: Mode):
        for i in range(out.size):
            out[i] = mode.gain if mode.name == "sum" else -1

    saved, out = named.compile(target=target_of(device)), pa.zeros(2, device=device)
    saved(out, Mode(3.0))
    assert out.tolist() == [3, 3]
    with pytest.raises(TypeError, match="has no variant"):
        saved(out, Mode(3.0, "mean"))
