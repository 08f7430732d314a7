"""Arrays of records: on the host as NumPy's structured arrays, in kernels by field, by record and by view."""

import copy
import linecache
import pickle
import random
from dataclasses import dataclass, replace
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from dump_tools import same_bits

import pyarray as pa
from pyarray.jit.kernel import kernel
from pyarray.structured_array import StructuredArray


@dataclass
class Pose:
    x: pa.float32
    angle: float


@dataclass
class Particle:
    kind: pa.int8
    pose: Pose
    v: pa.ndarray[pa.float32, (3,)]
    charge: pa.complex64 = 0

    @pa.func
    def speed(self):
        return self.v @ self.v

    @pa.func
    def __add__(self, other):
        return Particle(self.kind, self.pose, self.v + other.v, self.charge + other.charge)


class Named(NamedTuple):
    x: str


class Cell(NamedTuple):
    value: pa.float64
    count: int


PARTICLE = pa.zeros(0, dtype=Particle).dtype


def particles(n, seed=0):
    """Records with small numbers."""
    rng = np.random.default_rng(seed)
    made = np.zeros(n, PARTICLE)
    made["kind"] = rng.integers(-5, 5, n)
    made["pose"]["x"] = rng.integers(-9, 9, n)
    made["pose"]["angle"] = rng.integers(-9, 9, n)
    made["v"] = rng.integers(-4, 4, (n, 3))
    made["charge"] = rng.integers(0, 4, n) + 1j
    return made


def there(device, values, dtype=None):
    return pa.array(values, dtype=dtype, device=device)


def leaves_of(x):
    """The fields of numbers, of inner records too."""
    return [leaf for name in x.dtype.names for leaf in leaves_of(x[name])] if x.dtype.names else [x]


def same(found, expected):
    """Assert that all numbers are equal; the gaps between them may differ."""
    found, expected = pa.asnumpy(found), np.asarray(expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    for a, b in zip(leaves_of(found), leaves_of(expected), strict=True):
        np.testing.assert_array_equal(a, b)


# ---- the host


def test_fields_are_views(device):
    a = there(device, particles(5))
    expected = particles(5)
    a["v"][1:3, 0] = 7
    a["pose"]["x"][::-1][0] = 8
    expected["v"][1:3, 0] = 7
    expected["pose"]["x"][4] = 8
    same(a, expected)
    assert type(a["v"]) is pa.ndarray
    assert (a["v"].shape, a["v"].strides, a["v"].dtype) == ((5, 3), expected["v"].strides, np.float32)
    assert a["pose"].dtype == PARTICLE["pose"]
    assert float(pa.sum(a["v"])) == expected["v"].sum()
    a["charge"] += 1j
    assert pa.asnumpy(a["charge"]).tolist() == (expected["charge"] + 1j).tolist()


def test_indices_shapes_and_copies_are_those_of_numpy(device):
    a, x = there(device, particles(6)), particles(6)
    mask = x["kind"] > 0
    keys = [slice(1, 4), slice(None, None, -2), 3, -1, ..., None, (slice(2), None), [0, 3, 3], mask, np.array([[1, 2]])]
    for key in keys:
        same(a[key], x[key])
    table, y = a.reshape(2, 3), x.reshape(2, 3)
    for key in [(1, 2), (..., 1), (slice(None), [2, 0]), (0,), mask.reshape(2, 3), (1, slice(None, None, -1))]:
        same(table[key], y[key])
    assert (table.T.shape, table.T.strides) == (y.T.shape, y.T.strides)
    same(table.T.ravel(), y.T.ravel())
    same(a[::2].copy(), x[::2])
    assert pa.asnumpy(a[["v", "kind"]])["v"].tolist() == x["v"].tolist()
    assert (a.size, a.ndim, len(a), a.nbytes, a.itemsize) == (x.size, x.ndim, len(x), x.nbytes, x.itemsize)
    assert [r.item().kind for r in there(device, x, Particle)] == x["kind"].tolist()


def test_records_are_assigned(device):
    a, x = there(device, particles(4), Particle), particles(4)
    a[0] = Particle(3, Pose(1, 2), [4, 5, 6], 7j)
    x[0] = (3, (1, 2), (4, 5, 6), 7j)
    a[1] = a[2]
    x[1] = x[2]
    a[2:] = x[:2]
    x[2:] = x[:2].copy()
    a[3].pose.x = 9
    x[3]["pose"]["x"] = 9
    a[[0, 1]] = a[[1, 0]]
    x[[0, 1]] = x[[1, 0]]
    same(a, x)
    assert a[0].item().pose == Pose(*x[0]["pose"].item())
    assert float(a[3].pose.x) == 9
    a.fill(a[3])
    same(a, np.array([x[3]] * 4))


def test_what_is_assigned_to_some_fields_leaves_the_others(device):
    for kinds in (("f4", "f4", "f4"), ("f4", "f8", "f4"), ("i1", "i4", [("re", "f4"), ("im", "f4")])):
        dtype = np.dtype(list(zip("xyz", kinds, strict=True)), align=True)
        x = np.zeros(4, dtype)
        x["y"] = [1, 2, 3, 4]
        a = there(device, x)
        part = a[["x", "z"]]
        part[0] = value = (8, 9) if kinds[2] == "f4" else (8, (9, 10))
        part[[2, 1]] = part[[0, 3]]
        part[1:] = part[:-1]
        a[["z"]] = part[["z"]][::-1]
        for name, item in zip("xz", value, strict=True):  # NumPy's own assignment may copy what is between the fields
            x[name][0] = item
            x[name][[2, 1]] = x[name][[0, 3]]
            x[name][1:] = x[name][:-1].copy()
        x["z"] = x["z"][::-1].copy()
        same(a, x)
        assert a["y"].tolist() == [1, 2, 3, 4]


def test_equality_pickles_and_transfers(device):
    a = there(device, particles(4), Particle)
    changed = a.copy()
    changed["v"][2, 1] += 1
    assert (a == changed).tolist() == [True, True, False, True]
    assert (a != changed[2]).tolist() == [True] * 4
    assert (a == a[1]).tolist() == [k == 1 for k in range(4)]
    again = pickle.loads(pickle.dumps(a[::2]))
    assert again.device == a.device
    assert isinstance(again[0].item(), Particle)
    assert bool((again == a[::2]).all())
    assert bool((copy.deepcopy(a) == a).all())
    host = a.to_device("cpu")
    same(a, np.asarray(host))
    assert bool((host.to_device(device) == a).all())
    assert repr(a.tolist()) == repr(pa.asnumpy(a).tolist())
    assert a.tobytes() == pa.asnumpy(a).tobytes()


def test_memory_of_numpy_is_shared():
    x = particles(4)
    a = pa.asarray(x[::-1])
    a["kind"] = 4
    assert x["kind"].tolist() == [4] * 4
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        pa.asarray(x)["kind"] = 5
    assert np.shares_memory(np.asarray(a), x)


def test_made_of_all_that_names_a_dtype(device):
    spec = [("x", "f4"), ("v", "f4", (3,))]
    for dtype in (spec, np.dtype(spec), {"names": ["x", "v"], "formats": ["f4", "3f4"]}):
        for make in (pa.zeros, pa.empty, pa.ones):
            assert make((2, 3), dtype=dtype, device=device).dtype == np.dtype(spec)
    assert pa.zeros(2, dtype="i4,f4", device=device).tolist() == [(0, 0.0)] * 2
    assert pa.ones(2, dtype=Cell, device=device)[1].item() == Cell(1.0, 1)
    assert pa.full(2, Cell(2, 3), dtype=Cell, device=device).tolist() == [(2.0, 3)] * 2
    cells = pa.asarray([Cell(1, 2), (3, 4)], dtype=Cell, device=device)
    assert pa.zeros_like(cells).tolist() == [(0.0, 0)] * 2
    assert pa.empty_like(cells, shape=(0, 2)).shape == (0, 2)
    assert pa.zeros((2, 3), dtype=Cell, order="F", device=device).strides == (16, 32)
    assert cells.astype([("value", "f4"), ("count", "u4")]).tolist() == [(1.0, 2), (3.0, 4)]
    halves = pa.zeros(2, dtype=[("a", ml_dtypes.bfloat16), ("b", "f2")], device=device)
    assert halves["a"].dtype == pa.bfloat16


REFUSED = {
    "a packed dtype": (lambda: pa.zeros(1, dtype="i1,f4"), TypeError, r"'f1' begins at byte 1, .*align=True"),
    "a packed record": (lambda: pa.zeros(1, dtype=[("a", "f8"), ("b", "i4")]), TypeError, r"12 bytes .*align=True"),
    "packed memory": (lambda: pa.asarray(np.zeros(2, "i1,f4")), TypeError, r"repack_fields\(x, align=True\)"),
    "objects": (lambda: pa.zeros(1, dtype=[("a", "O")]), TypeError, "the field 'a' .* is not supported"),
    "other bytes": (lambda: pa.zeros(1, dtype=[("a", ">f4")]), TypeError, "'a' has a foreign byte order"),
    "a name": (lambda: pa.zeros(1, dtype=[("a b", "f4")]), TypeError, "'a b' is called by no identifier"),
    "arrays of records": (lambda: pa.zeros(1, dtype=[("a", "i4,i4", 2)]), TypeError, "'a' is an array of records"),
    "no declared type": (lambda: pa.zeros(1, dtype=Named), TypeError, "'x' of Named is declared <class 'str'>"),
    "a union": (lambda: pa.zeros(1, dtype={"names": "ab", "formats": ["f4"] * 2, "offsets": [0, 0]}), TypeError,
                "'b' overlaps"),
    "arithmetic": (lambda: pa.zeros(2, dtype=Cell) + 1, TypeError, "no arithmetic .* a.'x'. . 1"),
    "order": (lambda: pa.zeros(2, dtype=Cell) < pa.zeros(2, dtype=Cell), TypeError, "no arithmetic and no order"),
    "a ufunc": (lambda: np.add(pa.zeros(2, dtype=Cell), 1), TypeError, "add.*no arithmetic"),
    "a function": (lambda: pa.sum(pa.zeros(2, dtype=Cell)), TypeError, "takes arrays .*pass a field"),
    "a function of records of NumPy": (lambda: pa.sum(np.zeros(2, "i4,i4")), TypeError, "records.*pass a field"),
    "DLPack": (lambda: np.from_dlpack(pa.zeros(2, dtype=Cell)), AttributeError, "DLPack .* no records"),
    "another field": (lambda: pa.zeros(2, dtype=Cell)["q"], KeyError, "no field 'q'; the fields are value, count"),
    "a field as attribute": (lambda: pa.zeros(2, dtype=Cell).value, AttributeError, "write a.'value'."),
    "an index too many": (lambda: pa.zeros(2, dtype=Cell)[0, 0], IndexError, "too many indices"),
    "truth": (lambda: bool(pa.zeros((), dtype=Cell)), TypeError, "no truth value"),
    "no record": (lambda: pa.zeros(2, dtype=Cell).__setitem__(0, (1, 2, 3)), TypeError, "no record of Cell"),
    "a view of another size": (lambda: pa.zeros(2, dtype=Cell).view(Pose).view(Particle), TypeError, "16 bytes"),
    "a cast to numbers": (lambda: pa.zeros(2, dtype=Cell).astype("f4"), TypeError, "cast a field"),
    "a constructor": (lambda: StructuredArray(3), TypeError, "not constructed directly"),
    "hash": (lambda: hash(pa.zeros(2, dtype=Cell)), TypeError, "unhashable"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


# ---- kernels


@pa.kernel
def step(a: pa.ndarray[Particle, 1], b, dt: pa.float32):
    for i in range(len(a)):
        a[i].pose.x += a[i].v[0] * dt
        a[i].pose.angle = i
        a[i].v[1:] *= 2
        a[i].charge = -a[i].charge
        b[i] = a[i] + a[(i + 1) % a.size if i < 0 else i]
        b[i].kind = 3 if a[i].speed() > 9 else a[i].kind


def test_fields_records_and_methods_in_kernels(device):
    x, y = particles(50), np.zeros(50, PARTICLE)
    a, b = there(device, x, Particle), there(device, y, Particle)
    for checked in (False, True):
        with pa.debug(checked):
            step(a, b, 0.5)
        x["pose"]["x"] += x["v"][:, 0] * np.float32(0.5)
        x["pose"]["angle"] = np.arange(50)
        x["v"][:, 1:] *= 2
        x["charge"] *= -1
        y[:] = x
        y["v"] *= 2
        y["charge"] *= 2
        y["kind"] = np.where((x["v"] ** 2).sum(1) > 9, 3, x["kind"])
        same(a, x)
        same(b, y)
    assert step.signature["b.v"].direction == "INOUT"


def test_one_artifact_for_all_sizes_and_strides(device):
    @pa.kernel
    def double(a):
        for i in range(a.shape[0]):
            a[i].value *= 2

    x = np.zeros(12, [("value", "f8"), ("count", "i8")])
    for size, key in ((12, slice(None)), (12, slice(1, None, 3)), (7, slice(None, None, -1)), (1, slice(None))):
        a, y = there(device, x[:size]), np.array(x[:size])
        a["value"] = np.arange(size)
        y["value"] = np.arange(size)
        if size > 1:
            double(a[key])
            y["value"][key] *= 2
            same(a, y)
    assert double.cache_info()["variants"] == 1


def test_records_of_two_axes_loops_and_functions(device):
    @pa.func
    def first(row: pa.ndarray[Cell, 1]):
        return row[0].value

    @pa.kernel
    def rows(m: pa.ndarray[Cell, 2], out):
        for i in range(m.shape[0]):
            row = m[i]
            total = first(row)
            for cell in row[1:]:
                total += cell.value
            for j, cell in enumerate(reversed(row)):
                total += j * cell["count"]
            for cell, other in zip(row, row[::-1]):  # noqa: B905
                total += cell.value * other.count
            out[i] = total + len(row) + m.ndim + m.size + m.itemsize
            row[-1].count = row["count"][0]

    x = np.zeros((4, 3), pa.zeros(0, dtype=Cell).dtype)
    x["value"], x["count"] = np.arange(12).reshape(4, 3), np.arange(12).reshape(4, 3) % 5
    m, out = there(device, x, Cell), pa.zeros(4, device=device)
    rows(m, out)
    v, c = x["value"], x["count"]
    expected = v.sum(1) + c[:, ::-1] @ [0, 1, 2] + (v * c[:, ::-1]).sum(1) + 3 + 2 + 12 + 16
    assert pa.asnumpy(out).tolist() == expected.tolist()
    c[:, -1] = c[:, 0]
    same(m, x)


def test_a_record_in_a_variable_is_a_copy(device):
    @pa.kernel
    def swap(a):
        for i in range(a.size // 2):
            t = a[2 * i]
            a[2 * i] = a[2 * i + 1]
            a[2 * i + 1] = t

    @pa.kernel
    def rotate(a):
        for _ in range(1):
            a[0], a[1], a[2] = a[2], a[0], a[1]
            p = replace(a[3], kind=9)
            p.v[0] = 8.0
            p.pose = Pose(1.0, 2.0)
            a[4] = p

    x = particles(6)
    a = there(device, x, Particle)
    swap(a)
    x = x[[1, 0, 3, 2, 5, 4]]
    same(a, x)
    rotate(a)
    x[[0, 1, 2]] = x[[2, 0, 1]]
    x[4] = x[3]
    x["kind"][4], x["v"][4, 0], x["pose"][4] = 9, 8, (1, 2)
    same(a, x)


def test_what_is_stored_first_decides_no_index(device):
    @pa.kernel
    def chase(a):
        for _ in range(1):
            a[a[0].count] = Cell(a[0].value + 1, a[1].count)
            a[a[2].count].count += a[2].count
            a[a[3].count] = (5.0, 0)

    x = np.array([(0, 0), (1, 3), (2, 2), (3, 3)], pa.zeros(0, dtype=Cell).dtype)
    a = there(device, x, Cell)
    chase(a)
    assert pa.asnumpy(a).tolist() == [(1.0, 3), (1.0, 3), (2.0, 4), (5.0, 0)]


def test_indices_that_call_are_evaluated_once(device):
    @pa.func
    def ticket(log):
        return int(pa.atomic_add(log, 0, 1)) % 4

    @pa.kernel
    def tickets(a, log):
        for _ in range(1):
            a[ticket(log)].count = 10
            a[ticket(log)].count += 20
            a[ticket(log)] = Cell(7, log[0])
            p = a[ticket(log)]
            log[1] = p.count + a[ticket(log)].count + int(a[ticket(log)].value)

    a, log = there(device, [(k, k) for k in range(4)], Cell), pa.zeros(2, dtype="i8", device=device)
    tickets(a, log)
    assert pa.asnumpy(a).tolist() == [(0.0, 10), (1.0, 21), (7.0, 2), (3.0, 3)] or log.tolist()[0] == 6
    assert log.tolist() == [6, 3 + 10 + 1]


def test_atomics_on_fields(device):
    @pa.kernel
    def histogram(bins, keys):
        for i in range(keys.size):
            pa.atomic_add(bins["count"], keys[i], 1)
            pa.atomic_max(bins["value"], keys[i], float(i))

    bins = pa.zeros(4, dtype=Cell, device=device)
    histogram(bins, there(device, np.arange(100) % 3))
    assert bins.tolist() == [(99.0, 34), (97.0, 33), (98.0, 33), (0.0, 0)]


def test_fields_that_are_views_in_functions(device):
    @pa.func
    def scale(v, factor):
        for k in range(len(v)):
            v[k] *= factor

    @pa.kernel
    def all_of(a):
        for i in range(a.size):
            scale(a[i].v, i)
            q = a[i].v
            q[0] += 1

    x = particles(5)
    a = there(device, x, Particle)
    all_of(a)
    x["v"] *= np.arange(5)[:, None]
    x["v"][:, 0] += 1
    same(a, x)


def test_bounds_name_the_field(device):
    @pa.kernel
    def past(a):
        for i in range(a.size):
            a[i + 1].pose.x = 1

    a = there(device, particles(3), Particle)
    with pa.debug(), pytest.raises(pa.BoundsError, match=r"argument 'a.pose.x' axis 0: got index 3"):
        past(a)


def test_annotations(device):
    @pa.kernel
    def reads(a: pa.In[pa.ndarray[Particle, 1]], out: pa.Out[pa.ndarray[Cell]]):
        for i in range(a.shape[0]):
            out[i] = Cell(a[i].pose.x, 1)

    a, out = there(device, particles(3), Particle), pa.zeros(3, dtype=Cell, device=device)
    with pa.debug():
        reads(a, out)
    assert out.tolist() == [(x, 1) for x in particles(3)["pose"]["x"].tolist()]
    assert reads.signature["a.pose.x"].direction == "IN"
    with pa.debug(), pytest.raises(ValueError, match=r"'out.value' is declared Out"):
        reads(a[:2], out)
    plain = there(device, particles(3))
    for wrong, message in (
        (plain, r"must be a 1-D array of Particle, got one of .*write .view\(Particle\)"),
        (out, "must be a 1-D array of Particle, got one of Cell"),
        (a.reshape(1, 3), r"must be a 1-D array of Particle, got a 2-D array of shape \(1, 3\)"),
        ([1], r"got list; make one with pa.asarray\(..., dtype=Particle\)"),
        (pa.zeros(3, device=device), "must be a 1-D array of Particle, got ndarray"),
    ):
        with pytest.raises(TypeError, match=message):
            reads(wrong, out)
    reads(plain.view(Particle), out)


def test_read_only_records(device):
    a = there(device, particles(3), Particle)
    a.flags.writeable = False
    with pytest.raises(ValueError, match=r"'a.pose.x' is written by the kernel, and this array is read-only"):
        step(a, a.copy(), 1)
    with pytest.raises(ValueError, match="read-only"):
        a["kind"][0] = 1


def test_records_of_numpy_are_arguments(device):
    x, y = particles(20), np.zeros(20, PARTICLE)
    a, b = there(device, x, Particle), there(device, y, Particle)
    step(a, b, 2.0)
    if str(device) == "cpu":
        step(x, y, 2.0)
        same(a, x)
        same(b, y)
    else:  # fields of one memory can't be copied back one by one
        with pa.default_device(device), pytest.raises(ValueError, match=r"'a.pose.x' is written and overlaps"):
            step(x, y, 2.0)
    with pytest.raises(TypeError, match=r"must be a 1-D array of Particle, got one of"):
        step(np.zeros(2, "i4,i4"), y, 1)


def test_parts_of_other_arguments(device):
    @dataclass
    class World:
        bodies: pa.ndarray[Particle, 1]
        gravity: pa.float32

    @pa.kernel
    def fall(world: World, pair):
        for i in range(world.bodies.shape[0]):
            world.bodies[i].v[2] -= world.gravity
            pair[0][i].value = world.bodies[i].v[2]

    a, cells = there(device, particles(4), Particle), pa.zeros(4, dtype=Cell, device=device)
    fall(World(a, 2.0), (cells, 1))
    assert cells["value"].tolist() == (particles(4)["v"][:, 2] - 2).tolist()


def test_dumps_replay(device, tmp_path):
    a, b = there(device, particles(30), Particle), pa.zeros(30, dtype=Particle, device=device)
    with pa.dump(tmp_path):
        step(a[1::2], b[:15], 0.5)
        step(a[::-1], a, 0.0) if str(device) == "cpu" else None
    launches = [launch for launch in pa.load_dump(tmp_path) if launch.kernel == "step"]
    assert "a.pose.angle" in launches[0].args
    for launch in launches[:1]:
        for name, found in launch.replay().items():
            assert same_bits(found, launch.args[name].after)


def test_saved_kernels_and_kernels_compiled_ahead(tmp_path):
    a, b = there("cpu", particles(9), Particle), pa.zeros(9, dtype=Particle)
    step(a, b, 1.0)
    step.save(tmp_path / "step.pak")
    again = pa.load_kernel(tmp_path / "step.pak")
    c, d = a.copy(), b.copy()
    step(a, b, 0.25)
    again(c, d, 0.25)
    assert bool((a == c).all())
    assert bool((b == d).all())
    step.compile(pa.ndarray[Particle, 1], pa.ndarray[Particle, 1], pa.float32, target="cpu")


def test_captured_launches(device):
    a, b = there(device, particles(9), Particle), pa.zeros(9, dtype=Particle, device=device)
    c, d = a.copy(), b.copy()
    step(c.copy(), d.copy(), 0.5)
    with pa.capture() as graph:
        step(a, b, 0.5)
    graph.launch()
    step(c, d, 0.5)
    step(c, d, 0.5)
    same(a, pa.asnumpy(c))


# ---- drawn layouts

TYPES = ("i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "?", ml_dtypes.bfloat16)


def drawn_dtype(draw, depth=0):
    """A structured dtype with C's alignment, and sometimes with more room than that."""
    spec = []
    for k in range(draw.randint(1, 4)):
        kind = drawn_dtype(draw, 1) if depth == 0 and draw.random() < 0.25 else draw.choice(TYPES)
        shape = () if isinstance(kind, np.dtype) or draw.random() < 0.6 else draw.choice([(2,), (1,), (2, 3)])
        spec.append((f"f{k}", kind, shape))
    made = np.dtype(spec, align=True)
    if draw.random() < 0.3:
        fields = [made.fields[name] for name in made.names]
        room = {"names": list(made.names), "formats": [f[0] for f in fields], "offsets": [16 + f[1] for f in fields]}
        made = np.dtype({**room, "itemsize": 32 + -(-made.itemsize // 16) * 16, "aligned": True})
    return made


def paths(dtype, path=""):
    """(path of each field of numbers, its shape, its kind)."""
    for name in dtype.names:
        base, shape = dtype[name].subdtype or (dtype[name], ())
        if base.names:
            yield from paths(base, f"{path}.{name}")
        else:
            yield f"{path}.{name}", shape, "f" if base == ml_dtypes.bfloat16 else base.kind


def drawn_kernel(dtype):
    """A kernel that copies records, swaps two, and adds to fields."""
    lines = ["def drawn(a, b, n):", "    for i in range(a.shape[0]):", "        b[i] = a[i]"]
    for path, shape, kind in paths(dtype):
        one = "not " if kind == "b" else "1 + "
        index = f"[{', '.join(str(n - 1) for n in shape)}]" if shape else ""
        lines.append(f"        a[i]{path}{index} = {one}a[i]{path}{index}")
        if shape and kind not in "b":
            lines.append(f"        a[i]{path} += b[i]{path}")
    lines += ["    for k in range(1):", "        if n > 1:", "            b[0], b[n - 1] = b[n - 1], b[0]"]
    return "\n".join(lines) + "\n"


def as_drawn(dtype, x):
    """What the kernel does, by NumPy."""
    y = x.copy()
    for path, shape, kind in paths(dtype):
        field = x
        for name in path.split(".")[1:]:
            field = field[name]
        old = field.copy()
        index = (..., *(n - 1 for n in shape))
        field[index] = ~field[index] if kind == "b" else field[index] + field.dtype.type(1)
        if shape and kind not in "b":
            field += old
    if len(y) > 1:
        y[[0, -1]] = y[[-1, 0]]
    return y


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_drawn_layouts(device, seed):
    draw = random.Random(seed)
    dtype = drawn_dtype(draw)
    text, path = drawn_kernel(dtype), f"<records {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {})
    made = kernel(space["drawn"])
    for n, key in ((7, slice(None)), (1, slice(None)), (9, slice(None, None, -2)), (0, slice(None))):
        x = np.zeros(n, dtype)
        for name, _, kind in paths(dtype):
            field = x
            for part in name.split(".")[1:]:
                field = field[part]
            field[...] = np.random.default_rng(seed).integers(0, 2 if kind == "b" else 9, field.shape)
        a = pa.asarray(x.copy(), device=device)
        b = pa.zeros(len(x[key]), dtype=dtype, device=device)
        for checked in (False, True):
            with pa.debug(checked):
                made(a[key], b, len(x[key]))
            expected = as_drawn(dtype, x[key])
            same(a, x)
            same(b, expected)


def test_what_replace_leaves_out_is_evaluated(device):
    @pa.func
    def note(log, k):
        log[0] = log[0] * 10 + k
        return k

    @pa.kernel
    def copies(a, out, log):
        for _ in range(1):
            made = replace(Pose(note(log, 1), note(log, 2)), x=note(log, 3))
            out[0], out[1] = made.x, made.angle
            read = replace(a[note(log, 2)], value=note(log, 5))
            out[2] = read.value + read.count
            out[3] = replace(a[note(log, 1)], count=4).value

    a = there(device, [(1, 2), (3, 4), (5, 6)], Cell)
    out, log = pa.zeros(4, device=device), pa.zeros(1, dtype="i8", device=device)
    copies(a, out, log)
    assert (out.tolist(), log.tolist()) == ([3.0, 2.0, 11.0, 3.0], [123251])


def test_a_number_that_its_field_cant_hold(device):
    small = np.dtype([("n", np.int8), ("x", np.float32)], align=True)
    a = pa.zeros(3, dtype=small, device=device)
    for value in ((300, 1.0), [(300, 1.0)] * 3):
        with pytest.raises(OverflowError, match="300 out of bounds for int8; pass a number that fits"):
            a[0 if isinstance(value, tuple) else slice(None)] = value
    assert pa.asnumpy(a)["n"].tolist() == [0, 0, 0]


@dataclass
class Pair:
    a: pa.ndarray[pa.float64, (2,)]
    b: pa.ndarray[pa.float64, (2,)]
    m: pa.ndarray[pa.float64, (2, 2)]


def test_what_is_stored_into_a_record_is_read_before(device):
    @pa.kernel
    def exchanged(x):
        for i in range(x.size):
            match i:
                case 0:
                    x[i] = Pair(x[i].b, x[i].a, x[i].m.T)
                case 1:
                    x[i].m = x[i].m.T
                case 2:
                    x[i] = (x["b"][i][::-1], x[i].a, x[i].m[::-1])
                case _:
                    x[i] = replace(x[i], a=x[i].a[::-1], m=x[i].m[:, ::-1])

    start = pa.zeros(4, dtype=Pair)
    start["a"], start["b"], start["m"] = [1, 2], [3, 4], [[1, 2], [3, 4]]
    for checked in (False, True):
        x = start.copy().to_device(device)
        with pa.debug(checked):
            exchanged(x)
        assert x["a"].tolist() == [[3, 4], [1, 2], [4, 3], [2, 1]]
        assert x["b"].tolist() == [[1, 2], [3, 4], [1, 2], [3, 4]]
        assert x["m"].tolist() == [[[1, 3], [2, 4]], [[1, 3], [2, 4]], [[3, 4], [1, 2]], [[2, 1], [4, 3]]]


@dataclass
class Total:
    sum: pa.float64
    most: pa.float32
    count: pa.int8 = 0


def test_numbers_of_a_record_are_reduced_into(device):
    @pa.kernel
    def collected(out, v, k: int):
        for i in range(v.size):
            out[k].sum += v[i]
            out[k].most = max(out[k].most, v[i])
            out[0].count -= 1

    v = np.arange(300, dtype=np.float32)
    for checked in (False, True):
        out = pa.zeros(2, dtype=Total, device=device)
        with pa.debug(checked):
            collected(out, pa.asarray(v, device=device), 1)
        assert [r.item() for r in out] == [Total(0, 0, -44), Total(v.sum(), 299, 0)]


def test_an_update_that_is_no_reduction_names_the_field():
    @pa.kernel
    def shared(out, v):
        for i in range(v.size):
            if v[i] > 0:
                out[0].sum += v[i]

    with pytest.raises(pa.CompileError, match=r"write pa.atomic_add\(out\['sum'\], index, x\)"):
        shared(pa.zeros(2, dtype=Total), pa.zeros(2))
