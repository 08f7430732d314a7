"""`python -m pyarray compile`: what it writes, prints and answers; and the instruction sets of CPUs."""

import dataclasses
import platform
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pyarray as pa
from pyarray import __main__ as command
from pyarray.driver import cc, targets
from pyarray.errors import CompileError, DeviceError

APP = """
    from __future__ import annotations
    import dataclasses
    import pyarray as pa

    @dataclasses.dataclass
    class Grid:
        v: pa.BufferView[pa.float32]
        h: float

    @pa.kernel(threads=64)
    def scaled(out: pa.BufferView[pa.float32], g: Grid):
        for i in range(out.size):
            out[i] = g.v[i] * g.h

    @pa.kernel(types=[(pa.ndarray[pa.int64, 1], int)])
    def fill(v, n):
        for i in range(v.size):
            v[i] = n

    @pa.autotune(configs=[pa.Config(rows=4), pa.Config(rows=8)])
    @pa.kernel
    def tuned(v: pa.BufferView[pa.int64], rows: pa.constexpr):
        for i in range(v.size):
            v[i] = rows

    @pa.kernel
    def generic(v):
        for i in range(v.size):
            v[i] = 0

    def make():
        @pa.kernel
        def inner(v: pa.BufferView[pa.int64]):
            for i in range(v.size):
                v[i] = 7
        return inner

    made = make()

    if __name__ == "__main__":
        raise SystemExit("it was run")
"""


@pytest.fixture
def app(tmp_path, monkeypatch):
    """A script, whose module is forgotten afterwards."""
    path = tmp_path / "kernels_app.py"
    path.write_text(textwrap.dedent(APP))
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    for name in [n for n in sys.modules if n.startswith("kernels_app")]:
        del sys.modules[name]


def run(capsys, *arguments):
    """Exit status, standard output and error."""
    with pytest.raises(SystemExit) as ended:
        command.main(["compile", *map(str, arguments)])
    return (ended.value.code or 0, *capsys.readouterr())


def test_what_is_written(app, tmp_path, capsys):
    out = tmp_path / "deep" / "files"
    status, said, errors = run(capsys, app, "--target", "cpu", "--target", "sm_90", "--target", "cpu", "--out", out)
    assert (status, errors) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == [
        "fill.kernel", "make.inner.kernel", "scaled.kernel", "tuned.kernel",
    ]  # fmt: skip
    left_out, head, *rows, last = said.splitlines()
    assert left_out.startswith("generic is left out: generic.compile(): 'v' has no annotation")
    assert head.split() == ["kernel", "target", "arguments", "bytes", "file"]
    assert [row.split()[:2] for row in rows] == [
        [name, target]
        for name, signatures in (("scaled", 1), ("fill", 2), ("tuned", 1), ("make.inner", 1))
        for _ in range(signatures)
        for target in ("cpu", "sm_90")
    ]
    assert last == f"4 files in {out}"
    v = pa.zeros(3, dtype=pa.int64)
    for name, args, expected in (("fill", (5,), 5), ("tuned", (), 4), ("make.inner", (), 7)):
        pa.load_kernel(out / f"{name}.kernel")(v, *args)
        assert v.tolist() == [expected] * 3
    grid = dataclasses.make_dataclass("Grid", ["v", "h"])(pa.ones(3, dtype=pa.float32), 2.0)
    result = pa.zeros(3, dtype=pa.float32)
    pa.load_kernel(out / "scaled.kernel")(result, grid)
    assert result.tolist() == [2, 2, 2]


def test_one_kernel_and_with_bounds_checks(app, tmp_path, capsys):
    status, said, _ = run(capsys, app, "--target", "cpu", "--out", tmp_path / "o", "--kernel", "fill", "--debug")
    assert status == 0
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["fill.kernel"]
    assert all(row["debug"] for row in pa.load_kernel(tmp_path / "o" / "fill.kernel").manifest()["variants"])
    assert "(with bounds checks)" in said


def test_a_module(app, tmp_path, capsys):
    status, said, _ = run(capsys, "kernels_app", "--target", "cpu", "--out", tmp_path / "o", "--kernel", "make.inner")
    assert status == 0
    assert said.endswith(f"1 file in {tmp_path / 'o'}\n")


def test_a_kernel_that_fails(app, tmp_path, capsys):
    app.write_text(app.read_text().replace("v[i] = n", "v[i] = n.nothing"))
    status, said, errors = run(capsys, app, "--target", "cpu", "--out", tmp_path / "o")
    assert status == 1
    assert errors.startswith("fill: kernels_app.py:")
    assert "has no attribute 'nothing'" in errors
    assert said.endswith(f"3 files in {tmp_path / 'o'}\n")


def test_no_compiler_for_the_target(app, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(targets, "_compilers", lambda target: iter(()))
    status, said, errors = run(capsys, app, "--target", "sm_90", "--out", tmp_path / "o")
    assert status == 1
    assert errors.startswith("scaled: nothing here compiles for sm_90: ")
    assert said.endswith(f"0 files in {tmp_path / 'o'}\n")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--target", "sm_9"], 2, "compile: unknown target 'sm_9': expected one like 'sm_90'"),
        ([], 2, "the following arguments are required: --target"),
        (["--target", "cpu", "--kernel", "nothing"], 1, "has no kernel 'nothing'; it has scaled, fill, tuned, generic"),
        (["--target", "cpu", "--kernel", "generic"], 1, "generic.compile(): 'v' has no annotation"),
    ],
)
def test_wrong_calls(app, capsys, tmp_path, arguments, status, text):
    got, _, errors = run(capsys, app, "--out", tmp_path / "o", *arguments)
    assert (got, text in errors) == (status, True), errors
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("program", "text", "status", "said"),
    [
        ("kernels_app.py", "1 / 0", 1, "ZeroDivisionError"),
        ("kernels_app.py", "raise SystemExit(3)", 1, "ended with 3 while it was imported; put what it runs under if"),
        ("kernels_app.py", "x = 1", 1, "has no kernel; they are made by pa.kernel"),
        ("absent_app.py", "", 1, "there is no file "),
        ("no_such_module_here", "", 1, "there is no module no_such_module_here"),
        ("a..b", "", 2, "expected a script (app.py) or a module (package.module), got 'a..b'"),
    ],
)
def test_programs_that_are_none(app, tmp_path, capsys, program, text, status, said):
    app.write_text(text)
    name = tmp_path / program if program.endswith(".py") else program
    got, _, errors = run(capsys, name, "--target", "cpu", "--out", tmp_path / "o")
    assert (got, said in errors) == (status, True), errors


@pytest.mark.slow
def test_from_a_shell(app, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pyarray", "compile", app, "--target", "cpu", "--out", tmp_path / "o"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    helped = subprocess.run([sys.executable, "-m", "pyarray", "compile", "--help"], capture_output=True, text=True)
    assert helped.returncode == 0
    for word in ("--target NAME", "--out", "--kernel", "--debug", "Exit status: 0, 1"):
        assert word in helped.stdout


# ---- instruction sets


def test_levels(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    flags = {level: row.split() for level, row in cc.LEVELS["x86_64"][0].items()}
    names, have = list(flags), set()
    for k, level in enumerate(names):
        have |= set(flags[level])
        monkeypatch.setattr(cc, "_processor_flags", lambda have=frozenset(have): have)
        assert [cc.has_level(name) for name in names] == [n <= k for n in range(len(names))]
    assert not cc.has_level("armv8-a")
    assert not cc.has_level(cc.processor())
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert cc.has_level("armv8-a")
    assert targets.find_target("cpu").machine == "armv8-a"
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert targets.find_target("cpu").machine == cc.processor()  # of which no level is known


def test_a_portable_toolchain():
    level = targets.find_target("cpu").machine
    here, portable = cc.toolchain(), cc.portable_toolchain(level)
    assert portable.fingerprint != here.fingerprint
    assert f"[{level}]" in portable.fingerprint
    text = "int f(void) { return __AVX512F__; }"
    if platform.machine() == "x86_64":
        with pytest.raises(CompileError, match="__AVX512F__"):
            portable.compile(text)
        assert cc.portable_toolchain("x86-64-v4").compile(text)
    with pytest.raises(DeviceError, match=r"doesn't know -m.*; take a lower level, or name a newer compiler"):
        cc.portable_toolchain("x86-64-v9").compile("")


def test_a_file_for_each_level_computes_the_same():
    @pa.kernel
    def axpy(y: pa.ndarray[pa.float32, 1], x: pa.ndarray[pa.float32, 1]):
        for i in range(y.size):
            y[i] = 2 * x[i] + y[i]

    x, results = pa.asarray(np.random.default_rng(1).random(1001).astype(np.float32)), []
    levels = [level for level in cc.LEVELS.get(platform.machine(), ({}, ""))[0] if cc.has_level(level)]
    for level in ["native", *levels]:
        y = pa.ones(1001, dtype=pa.float32)
        saved = axpy.compile(target=f"cpu:{level}")
        assert all(variant.runs_on(y.device) for variant in saved.saved_variants)
        saved(y, x)
        results.append(y.tolist())
    assert all(result == results[0] for result in results)
