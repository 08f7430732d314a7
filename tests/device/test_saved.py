"""Kernels in files: manifests, and launches in a process that has neither their source nor a compiler."""

import collections
import dataclasses
import enum
import json
import logging
import math
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import pyarray as pa
from pyarray.driver import get_device
from pyarray.jit import save, saved


@pa.func
def pick(v, i):
    return v[i]


def scaled():
    @pa.kernel
    def scale(out, v, factor: pa.float32, power=1, n: pa.constexpr = 2):
        for i in range(out.size):
            out[i] = v[i] * factor * power + n

    return scale


@pytest.fixture
def path(tmp_path):
    """A kernel in a file: contiguous, strided, pinned and checked variants."""
    k, v = scaled(), pa.asarray(np.arange(8, dtype=np.float32))
    out = pa.zeros(4, dtype=pa.float32)
    k(out, v[:4], 2)
    k(out, v[::2], 2)
    k(out, v[:4].mark_static(), 2)
    with pa.debug():
        k(out, v[:4], 2)
    k.save(tmp_path / "scale.kernel")
    return tmp_path / "scale.kernel"


def elsewhere(program, *args, **environment):
    """What a program prints in a process of its own, without a compiler and without a cache."""
    settings = {"PYARRAY_CC": "/nowhere/cc", "PYARRAY_CACHE": "0"} | environment
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, args)],
        capture_output=True,
        text=True,
        env=os.environ | settings,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- manifests


def test_manifest(device):
    k = scaled()
    v = pa.ones((6,), dtype=pa.float32, device=device)
    k(pa.zeros(3, dtype=pa.float32, device=device), v[::2].mark_static(), 2.0)
    facts = json.loads(json.dumps(k.manifest()))
    assert (facts["schema"], facts["kernel"], facts["debug"]) == (1, "scale", None)
    names = [(p["name"], p.get("default", "-")) for p in facts["parameters"]]
    assert names == [("out", "-"), ("v", "-"), ("factor", "-"), ("power", 1), ("n", 2)]
    (variant,) = facts["variants"]
    place = get_device(device)
    assert (variant["device"], variant["target"]) == (place.kind, place.driver.target())
    assert variant["artifact"] == next(iter(k._variants)).artifact.key
    out, v, factor, power, n = variant["leaves"]
    assert out["direction"] == "OUT"
    assert out["slots"] == ["data", "n0"]
    assert (v["direction"], v["dtype"], v["ndim"], v["layout"]) == ("IN", "float32", 1, "strided")
    assert v["slots"] == ["data", "n0", "s0"]
    assert v["pins"] == [{"axis": 0, "size": 3, "stride": 8, "multiple": 1}]
    assert (factor["dtype"], factor["annotation"], factor["slots"]) == ("float32", "float32", ["value"])
    assert (power["dtype"], power["weak"]) == ("int64", True)
    assert (n["kind"], n["value"], n["slots"]) == ("constant", "int 2", [])


def test_nothing_to_save(tmp_path):
    with pytest.raises(RuntimeError, match="has nothing to save before its first launch"):
        scaled().manifest()
    with pytest.raises(RuntimeError, match="has nothing to save before its first launch"):
        scaled().save(tmp_path / "k")
    assert not list(tmp_path.iterdir())


def test_a_constant_that_cannot_be_written_down(tmp_path):
    @pa.kernel
    def k(v, f: pa.constexpr):
        for i in range(v.size):
            v[i] = f(v, i)

    k(pa.ones(3), pick)
    with pytest.raises(TypeError, match="'k' can't be saved: 'f' was compiled in with <func pick>"):
        k.save(tmp_path / "k")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    k = scaled()
    k(pa.zeros(2, dtype=pa.float32), pa.ones(2, dtype=pa.float32), 1)
    k.save(tmp_path / "k")
    before = (tmp_path / "k").read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    with pytest.raises(OSError, match="no room"):
        k.save(tmp_path / "k")
    assert [f.name for f in tmp_path.iterdir()] == ["k"]
    assert (tmp_path / "k").read_bytes() == before


def test_variants_that_another_thread_compiles_meanwhile(tmp_path, monkeypatch):
    k, facts = scaled(), save._variant_row

    def slow(*args):
        k(pa.zeros(2), pa.ones(2), 1)
        return facts(*args)

    k(pa.zeros(2, dtype=pa.float32), pa.ones(2, dtype=pa.float32), 1)
    monkeypatch.setattr(save, "_variant_row", slow)
    k.save(tmp_path / "k")
    assert len(pa.load_kernel(tmp_path / "k").manifest()["variants"]) == 1
    assert k.cache_info()["variants"] == 2


# ---- another process


def test_another_process_needs_no_source_and_no_compiler(path):
    printed = elsewhere(
        """
        import sys, numpy as np, pyarray as pa
        k = pa.load_kernel(sys.argv[1])
        v, out = pa.asarray(np.arange(8, dtype=np.float32)), pa.asarray(np.empty(4, np.float32))
        for x in (v[4:], v[1::2], v[:4].mark_static()):
            k(out, x, factor=3.0)
            print(*out.tolist())
        with pa.debug():
            k(out, v[:4], 1, 2, n=2)
        print(*out.tolist())
        host = np.empty(4, np.float32)
        k(host, np.ones(4, np.float32), np.float32(1))
        print(host[0], k.signature["v"].direction, list(k.signature), k.manifest()["kernel"])
        """,
        path,
    )
    assert printed.splitlines() == [
        "14.0 17.0 20.0 23.0",
        "5.0 11.0 17.0 23.0",
        "2.0 5.0 8.0 11.0",
        "2.0 4.0 6.0 8.0",
        "3.0 IN ['out', 'v', 'factor', 'power'] scale",
    ]


def test_reports_come_with_the_file(tmp_path):
    @pa.kernel(debug=True)
    def beyond(v):
        for i in range(v.size):
            v[i] = pick(v, i + 1)

    a = pa.ones(4)
    with pytest.raises(pa.BoundsError) as here:
        beyond(a[:3])
    beyond.save(tmp_path / "beyond")
    again = pa.load_kernel(tmp_path / "beyond")
    with pytest.raises(pa.BoundsError) as there:
        again(a[:3])
    assert there.value.frames == here.value.frames
    assert [f.function for f in there.value.frames] == ["beyond", "pick"]
    for fact in ("kernel", "argument", "axis", "index", "size", "offset", "tid"):
        assert getattr(there.value, fact) == getattr(here.value, fact)
    printed = elsewhere(
        """
        import sys, pyarray as pa, numpy as np
        try:
            pa.load_kernel(sys.argv[1])(pa.asarray(np.ones(3)))
        except pa.BoundsError as error:
            print(error)
        """,
        tmp_path / "beyond",
    )
    assert printed.splitlines()[:-1] == str(there.value).splitlines()[:-1]


Pair = collections.namedtuple("Pair", "v factor")


@dataclasses.dataclass
class Frame:
    pair: Pair
    both: tuple


def test_structures(tmp_path):
    @pa.kernel
    def k(frame):
        for i in range(frame.pair.v.size):
            frame.both[0][i] = frame.pair.v[i] * frame.pair.factor + frame.both[1]

    v, out = pa.asarray(np.arange(3.0)), pa.zeros(3)
    k(Frame(Pair(v, 2.0), (out, 1)))
    k.save(tmp_path / "k")
    printed = elsewhere(
        """
        import sys, types, pyarray as pa, numpy as np
        k = pa.load_kernel(sys.argv[1])
        v, out = pa.asarray(np.arange(3.0)), pa.asarray(np.zeros(3))
        frame = types.SimpleNamespace(pair=types.SimpleNamespace(v=v, factor=3.0), both=(out, 2))
        k(frame)
        print(*out.tolist())
        frame.both = (out,)
        try:
            k(frame)
        except TypeError as error:
            print(error)
        """,
        tmp_path / "k",
    )
    first, second, third = printed.splitlines()
    assert first == "2.0 5.0 8.0"
    assert second.startswith("the saved kernel 'k' has no variant for frame: SimpleNamespace; there are:")
    assert "frame.pair.v: 1-D contiguous array of float64" in third


# ---- arguments that don't fit


@pytest.mark.parametrize(
    ("change", "came"),
    [
        (lambda a: {"v": a["v"].astype(pa.float64)}, "v: 1-D contiguous array of float64"),
        (lambda a: {"v": a["v"].reshape(2, 2)}, "v: 2-D contiguous array of float32"),
        (lambda a: {"v": 3}, "v: int"),
        (lambda a: {"v": "text"}, "v: str"),
        (lambda a: {"power": 1.0}, "power: float"),
        (lambda a: {"factor": "text"}, "factor: str"),
        (lambda a: {"n": 3}, "n: int"),
    ],
)
def test_types_that_were_not_saved(path, change, came):
    k = pa.load_kernel(path)
    args = {"out": pa.zeros(4, dtype=pa.float32), "v": pa.ones(4, dtype=pa.float32), "factor": 2}
    k(**args)
    with pytest.raises(TypeError) as caught:
        k(**args | change(args))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("the saved kernel 'scale' has no variant for ")
    assert came in lines[0]
    assert len(lines) == 5
    kept = "out: 1-D contiguous array of float32, v: 1-D contiguous array of float32, factor: float32"
    assert lines[1].strip() == f"{kept}, power: int64 (weak), n: int 2"
    assert lines[3].strip().startswith(kept.replace(", factor", ", axis 0: size 4, stride 4, factor"))
    assert lines[4].endswith("(with bounds checks)")


def test_a_variant_takes_what_it_is_general_enough_for(path):
    """Marks say more than is asked for, and strides are read at each launch; the least general one is taken."""
    k = pa.load_kernel(path)
    v = pa.asarray(np.arange(8, dtype=np.float32))
    out, strided_out = pa.zeros(4, dtype=pa.float32), pa.zeros(8, dtype=pa.float32)[::2]
    for x in (v[:4].assume(0, multiple_of=2), v[::2].mark_static(), v[::-2]):
        k(out, x, 2)
        assert out.tolist() == (2 * x + 2).tolist()
    with pytest.raises(TypeError, match="no variant for out: 1-D strided array"):
        k(strided_out, v[:4], 2)  # no variant reads the strides of out
    with pytest.raises(TypeError, match="no variant with bounds checks for"), pa.debug():
        k(out, v[::2], 2)


def test_host_arrays_are_copied_where_a_kernel_copies_them(path):
    k = pa.load_kernel(path)
    out, v = np.zeros(4, ">f4"), np.arange(4, dtype=">f4")  # of another byte order
    k(out, v, 2)
    assert out.tolist() == [2, 4, 6, 8]
    with pytest.raises(TypeError, match=r"v: 1-D strided array of >f8"):
        k(out, np.arange(8, dtype=">f8")[::2], 2)


def test_what_a_launch_refuses_is_refused(path):
    k = pa.load_kernel(path)
    out, v = pa.zeros(4, dtype=pa.float32), pa.ones(4, dtype=pa.float32)
    out.setflags(write=False)
    with pytest.raises(ValueError, match="'out' is written by the kernel, and this array is read-only"):
        k(out, v, 1)
    with pytest.raises(TypeError, match=r"^scale\(\) missing 1 required positional argument: 'factor'"):
        k(out, v)
    with pytest.raises(OverflowError, match="'power' = 9223372036854775808 is out of range"):
        k(pa.zeros(4, dtype=pa.float32), v, 1, 1 << 63)


# ---- files that don't fit


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda b: b"", "is no saved kernel"),
        (lambda b: b"PK" + b, "is no saved kernel"),
        (lambda b: b[:-1], "is damaged: its digest doesn't match"),
        (lambda b: b[: len(b) // 2], "is damaged: its digest doesn't match"),
        (lambda b: b[:-1] + bytes([b[-1] ^ 1]), "is damaged: its digest doesn't match"),
        (lambda b: b.replace(b"kernel 1", b"kernel 9", 1), "has schema '9', this pyarray reads 1"),
    ],
)
def test_damaged_files(path, damage, message):
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        pa.load_kernel(path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        pa.load_kernel(tmp_path / "none")


def test_another_machine_compiles_the_text(path, monkeypatch, caplog):
    k = pa.load_kernel(path)
    monkeypatch.setattr(type(get_device("cpu").driver), "machine", lambda self: "another")
    out = pa.zeros(4, dtype=pa.float32)
    with caplog.at_level(logging.WARNING, "pyarray"):
        k(out, pa.ones(4, dtype=pa.float32), 1)
        k(out, pa.ones(4, dtype=pa.float32), 1)
    assert out.tolist() == [3.0] * 4
    (record,) = caplog.records
    assert "and this is another" in record.getMessage()
    assert "its text is compiled here" in record.getMessage()


def test_another_machine_without_a_compiler(path):
    printed = elsewhere(
        """
        import sys, numpy as np, pyarray as pa
        from pyarray.driver.cpu import CpuDriver
        CpuDriver.machine = lambda self: "another"
        k = pa.load_kernel(sys.argv[1])
        try:
            k(pa.asarray(np.ones(4, np.float32)), pa.asarray(np.ones(4, np.float32)), 1)
        except pa.DeviceError as error:
            print(error)
        """,
        path,
    )
    assert "its text would have to be compiled here: PYARRAY_CC='/nowhere/cc': there is no such program" in printed


def test_observers_see_launches_of_saved_kernels(path):
    from pyarray.jit.launch_state import add_observer, remove_observer

    seen = []

    def observer(launch):
        seen.append((launch.kernel, list(launch.args)))
        launch.run()

    k, out = pa.load_kernel(path), pa.zeros(4, dtype=pa.float32)
    v = pa.ones(4, dtype=pa.float32)
    add_observer(observer)
    try:
        k(out, v, 1)
    finally:
        remove_observer(observer)
    assert ("scale", ["out", "v", "factor", "power", "n"]) in seen
    assert out.tolist() == [3.0] * 4
    assert isinstance(k, saved.SavedKernel)


class Way(enum.Enum):
    UP = 1
    DOWN = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


SINGLE = np.float32(0.1)


def test_defaults_that_json_has_not(tmp_path):
    @pa.kernel
    def defaults(
        out: pa.ndarray[pa.float64, 1], way=Way.UP, level=Level.HIGH, z=2j, single=SINGLE,
        pair=(1, 2.5), kind=pa.float32, n: int = Level.HIGH, last: float = math.inf,
    ):  # fmt: skip
        for i in range(out.size):
            out[i] = (way is Way.UP) + level + z.imag + single + pair[0] * pair[1] + kind(0.1) + n + (last > 1e300)

    expected = pa.zeros(1)
    defaults(expected)
    defaults.save(tmp_path / "launched")
    defaults.compile(target="cpu").save(tmp_path / "ahead")
    for name in ("launched", "ahead"):
        out = pa.zeros(1)
        pa.load_kernel(tmp_path / name)(out)
        assert out.tolist() == expected.tolist()
    with pytest.raises(TypeError, match=r"for .* way: Way <Way.DOWN: 2>, .*there are:\n .* way: Way <Way.UP: 1>"):
        pa.load_kernel(tmp_path / "ahead")(out, Way.DOWN)


def test_a_default_that_is_an_array_is_not_in_the_file(tmp_path):
    @pa.kernel
    def weighted(out: pa.ndarray[pa.float64, 1], w: pa.ndarray[pa.float64, 1] = pa.ones(2), k: float = 3.0):  # noqa: B008
        for i in range(out.size):
            out[i] = w[i] * k

    weighted.compile(target="cpu").save(tmp_path / "weighted")
    loaded, out = pa.load_kernel(tmp_path / "weighted"), pa.zeros(2)
    with pytest.raises(TypeError, match="w: the default of 'w', which is not in the file"):
        loaded(out)
    loaded(out, pa.ones(2))
    assert out.tolist() == [3, 3]
