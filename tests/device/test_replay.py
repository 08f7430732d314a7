"""Replays: a recorded launch once more, to the bit, without what it came from."""

import dataclasses

import numpy as np
import pytest
from dump_tools import run_python, same_bits
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on
from strategies import examples

import pyarray as pa
from pyarray import dtypes


@pa.kernel
def scale(v: pa.BufferView[pa.float32], factor: pa.float32):
    for i in range(v.size):
        v[i] = v[i] * factor


@pa.kernel
def copied(out, v):
    for i in range(out.size):
        out[i] = v[i]


@pa.kernel
def summed(out, v, w):
    for i in range(out.size):
        out[i] = v[i] + w[i]


@pa.kernel
def past(v):
    for i in range(v.size):
        v[i] = v[i + 1]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_replays_are_the_same_to_the_bit(device, dtype, tmp_path):
    x = (np.arange(40) % 7).astype(dtype.numpy)
    a = on(device, x)
    with pa.dump(tmp_path):
        copied(a[3:13], a[:29:-1])  # apart: on a GPU nobody knows which iteration comes first
        total = pa.sum(a)
    launches = pa.load_dump(tmp_path)
    assert len(launches) >= 2
    assert total.shape == ()
    for launch in launches:
        for name, found in launch.replay().items():
            assert same_bits(found, launch.args[name].after)


REPLAY = """
import sys
import pyarray as pa
for launch in pa.load_dump(sys.argv[1]):
    for name, found in launch.replay().items():
        assert found.tobytes() == launch.args[name].after.tobytes(), (launch, name)
        print(launch.kernel, name, found.sum())
"""


@pytest.mark.slow
def test_another_process_replays_without_the_source(tmp_path):
    space = {"pa": pa}
    source = tmp_path / "gone.py"
    source.write_text(
        "@pa.kernel\n"
        "def smooth(out, v, w: pa.float16):\n"
        "    for i in range(1, v.size - 1):\n"
        "        out[i] = (v[i - 1] + v[i + 1]) * w\n"
    )
    exec(compile(source.read_text(), str(source), "exec"), space)
    data = pa.asarray(np.linspace(0, 1, 50, dtype=np.float32))
    with pa.dump(tmp_path / "dump"):
        space["smooth"](data[::-1], data, 0.1)  # two views of one block, which the kernel tells nothing of
        pa.sqrt(data) @ pa.ones((50, 3), dtype=pa.float32)  # the same bits whatever is optimised
    source.unlink()
    out = run_python(REPLAY, str(tmp_path / "dump")).stdout
    kernels = [line.split()[0] for line in out.splitlines()]
    assert kernels[0] == "smooth"
    assert {"sqrt", "matmul"} <= set(kernels)


def test_overlaps_are_rebuilt(device, tmp_path):
    data = on(device, np.arange(20.0))
    with pa.dump(tmp_path):
        copied(data[5:15], data[0:10])
    (launch,) = pa.load_dump(tmp_path)
    out, v = launch.args["out"].facts, launch.args["v"].facts
    assert out["block"] == v["block"]
    assert out["place"] - v["place"] == 40
    assert out["buffer"] == v["buffer"]
    # of the rest a GPU says which iteration came first
    assert same_bits(launch.replay()["out"][:5], launch.args["out"].after[:5])


@pytest.mark.all_variants
@given(data=st.data())
@examples(40)
def test_drawn_overlaps_are_rebuilt(device, tmp_path_factory, data):
    """Views of one memory: apart, side by side, crossing, or one inside the other."""
    host, folder = np.arange(24.0), tmp_path_factory.mktemp("dump")
    v, w = (data.draw(st.slices(host.size)) for _ in range(2))
    memory, size = on(device, host), min(host[v].size, host[w].size)
    out = pa.zeros(size, device=device)
    with pa.dump(folder):
        summed(out, memory[v], memory[w])
    (launch,) = pa.load_dump(folder)
    assert same_bits(launch.args["v"].before, host[v])
    assert same_bits(launch.args["w"].before, host[w])
    assert same_bits(launch.replay()["out"], host[v][:size] + host[w][:size])


def test_debug_launches_are_replayed_with_their_checks(device, tmp_path):
    v = on(device, np.arange(9.0))
    with pa.debug(), pa.dump(tmp_path):
        product = pa.ones((3, 4)) @ pa.ones((4, 2))  # its checks know addresses
        with pytest.raises(pa.BoundsError) as raised:
            past(v[2:8])
        scale(v.astype(pa.float32), 2.0)  # and it goes on
    assert product.tolist() == [[4.0, 4.0]] * 3
    *_, matmul, failed, _, last = pa.load_dump(tmp_path)
    assert (matmul.kernel, matmul.args["a_low"].kind) == ("matmul", "address")
    assert same_bits(matmul.replay()["c"], matmul.args["c"].after)
    assert (failed.kernel, failed.status, last.status) == ("past", "error", "ok")
    assert failed.error.startswith("BoundsError: BufferView out of range: kernel[past] tid=5")
    assert failed.args["v"].before.tolist() == [2, 3, 4, 5, 6, 7]
    with pytest.raises(pa.BoundsError) as again:
        failed.replay()
    for fact in ("kernel", "argument", "axis", "index", "offset", "size", "tid", "frames"):
        assert getattr(again.value, fact) == getattr(raised.value, fact)


@dataclasses.dataclass
class Pair:
    v: pa.BufferView[pa.float32]
    factor: pa.float32


@pa.kernel
def paired(out: pa.Out[pa.ndarray[pa.float32, 1]], pair: Pair, more):
    for i in range(pair.v.size):
        out[i] = pair.v[i] * pair.factor + more[0][i]


def test_fields_promises_and_saved_kernels(device, tmp_path):
    """Arguments are leaves by path; what was folded in at compile time is in the program."""
    v = on(device, np.arange(6, dtype=np.float32))
    out = on(device, np.zeros(6, np.float32))
    with pa.dump(tmp_path / "dump"):
        paired(out, Pair(v, 2.0), (v, 1))
        paired(out, Pair(v.mark_static(), 2.0), (v, 1))
    paired.save(tmp_path / "saved")
    with pa.dump(tmp_path / "again"), pa.trace() as t:
        pa.load_kernel(tmp_path / "saved")(out, Pair(v, 2.0), (v, 1))
    launches = [*pa.load_dump(tmp_path / "dump"), *pa.load_dump(tmp_path / "again")]
    assert [launch.kernel for launch in launches] == ["paired"] * 3 == [t.launches[0].kernel] * 3
    assert launches[0].key == launches[2].key == t.launches[0].key != launches[1].key
    for launch in launches:
        assert list(launch.args) == ["out", "pair.v", "pair.factor", "more[0]", "more[1]"]
        assert launch.args["more[0]"].before.tolist() == list(range(6))
        assert launch.replay()["out"].tolist() == [0, 3, 6, 9, 12, 15]
    paired.dump("pair")
    with pa.dump(tmp_path / "dump", level=1):
        paired(out, Pair(v, 2.0), (v, 1))
    assert set(pa.load_dump(tmp_path / "dump")[0].args) == {"pair.v", "pair.factor", "more[1]"}


def test_unwritten_elements_are_said_again(device, tmp_path):
    v, out = on(device, np.ones(3, np.float32)), on(device, np.zeros(5, np.float32))
    with pa.debug(), pa.dump(tmp_path), pytest.raises(ValueError, match=r"'out' is declared Out.* left 2"):
        paired(out, Pair(v, 2.0), (v, 1))
    (launch,) = pa.load_dump(tmp_path)
    assert launch.status == "error"
    assert launch.args["out"].after.tolist() == [3, 3, 3, 0, 0]
    with pytest.raises(ValueError, match=r"'out' is declared Out.* left 2"):
        launch.replay()


def test_npz(tmp_path):
    a = pa.ones(3, dtype=pa.bfloat16)
    with pa.dump(tmp_path / "dump"):
        copied(pa.zeros(3, dtype=pa.bfloat16), a)
    pa.load_dump(tmp_path / "dump")[0].save(tmp_path / "launch.npz")
    with np.load(tmp_path / "launch.npz") as found:
        assert sorted(found) == ["out.after", "v.before"]
        assert found["v.before"].view(dtypes.bfloat16.numpy).tolist() == [1, 1, 1]
