"""Arrays through NumPy's files: what was saved comes back, on any device; and `testing`'s comparisons."""

import io

import numpy as np
import pytest
from hypothesis import given
from strategies import dtype_rows, examples, numpy_views

import pyarray as pa

FEW = examples(40)


@FEW
@given(numpy_views(dtype_rows.filter(lambda row: row.name != "float8_e5m2")))  # which files have no name for
def test_save_and_load(x):
    file = io.BytesIO()
    pa.save(file, pa.asarray(x))
    file.seek(0)
    back = pa.load(file)
    assert back.dtype == x.dtype
    assert back.shape == x.shape
    np.testing.assert_array_equal(back.get().astype(complex), x.astype(complex))


def test_names_and_devices(tmp_path, device):
    x = pa.asarray([[1.5, 2.5], [3.5, 4.5]], device=device)
    pa.save(tmp_path / "x", x.T)
    assert np.load(tmp_path / "x.npy").tolist() == [[1.5, 3.5], [2.5, 4.5]]
    back = pa.load(tmp_path / "x.npy", device=device)
    assert back.device == x.device
    assert back.tolist() == x.T.tolist()


def test_a_type_without_a_name_in_files(tmp_path, device):
    x = pa.asarray([1.5, -2.0], dtype="float8_e5m2", device=device)
    with pytest.raises(ValueError, match=r"no name for float8_e5m2; save a.view\('uint8'\)"):
        pa.save(tmp_path / "x.npy", x)
    pa.save(tmp_path / "x.npy", x.view("uint8"))
    assert pa.load(tmp_path / "x.npy", device=device).view("float8_e5m2").tolist() == [1.5, -2.0]


@pytest.mark.parametrize(("write", "dtype"), [(pa.savez, pa.bfloat16), (pa.savez_compressed, pa.float8_e4m3fn)])
def test_archives(tmp_path, write, dtype, device):
    x = pa.asarray([1.0, 2.0], dtype=dtype, device=device)
    write(tmp_path / "all.npz", x, [1, 2], z=x[1])
    with pa.load(tmp_path / "all.npz", device=device) as archive:
        assert sorted(archive) == sorted(archive.files) == ["arr_0", "arr_1", "z"]
        assert len(archive) == 3
        assert archive["arr_0"].dtype == dtype
        assert archive["arr_0"].device == x.device
        assert archive["arr_0"].tolist() == [1.0, 2.0]
        assert archive["z"].tolist() == 2.0
        assert archive["arr_1"].dtype == pa.int64
        with pytest.raises(KeyError):
            archive["nothing"]


def test_mapped_files(tmp_path):
    pa.save(tmp_path / "x.npy", pa.arange(5))
    frozen = pa.load(tmp_path / "x.npy", mmap_mode="r")
    assert not frozen.flags.writeable
    mapped = pa.load(tmp_path / "x.npy", mmap_mode="r+")
    mapped[1] = 77
    assert frozen[1].item() == 77
    assert pa.load(tmp_path / "x.npy")[1].item() == 77


def test_errors(tmp_path, device):
    with pytest.raises(FileNotFoundError):
        pa.load(tmp_path / "nothing.npy")
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(ValueError, match="pickle"):
        pa.load(tmp_path / "objects.npy")
    with pytest.raises(TypeError):
        pa.save(tmp_path / "x.npy", pa.ones(2), fix_imports=True)
    pa.save(tmp_path / "x.npy", pa.ones(2))
    if device != "cpu":
        with pytest.raises(ValueError, match="mmap_mode"):
            pa.load(tmp_path / "x.npy", mmap_mode="r", device=device)


def test_text(tmp_path):
    pa.savetxt(tmp_path / "x.txt", pa.asarray([[1, 2], [3, 4]]), fmt="%d", delimiter=",")
    assert pa.loadtxt(tmp_path / "x.txt", dtype=pa.int32, delimiter=",").tolist() == [[1, 2], [3, 4]]


# ---- testing


def test_comparisons(device):
    x = pa.asarray([1.0, 2.0, np.nan], device=device)
    pa.testing.assert_allclose(x, [1.0, 2.0 + 1e-9, np.nan])
    pa.testing.assert_array_equal(x, x)
    pa.testing.assert_array_almost_equal(x, np.array([1.0, 2.0000001, np.nan]))
    pa.testing.assert_almost_equal(x[0], 1.0)
    pa.testing.assert_array_less(x[:2], 3)
    pa.testing.assert_equal({"a": [x, 1]}, {"a": [x, 1]})
    half = pa.asarray([1.0, 2.0], dtype=pa.bfloat16, device=device)
    pa.testing.assert_allclose(half, [1, 2])


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("assert_allclose", [1.0], [1.1]),
        ("assert_array_equal", [1, 2], [1, 3]),
        ("assert_array_equal", [1, 2], [1, 2, 3]),
        ("assert_array_almost_equal", [1.0], [1.1]),
        ("assert_almost_equal", [1.0], [1.1]),
        ("assert_array_less", [1, 2], [2, 2]),
        ("assert_equal", [1, 2], [1, 3]),
    ],
)
def test_what_differs_fails(name, ours, theirs):
    with pytest.raises(AssertionError):
        getattr(pa.testing, name)(pa.asarray(ours), pa.asarray(theirs))
