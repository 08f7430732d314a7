"""Torch's tensors where they are more than memory: autograd is told of writes, and a tensor whose memory
isn't its values is refused."""

import gc
import weakref

import numpy as np
import pytest

import pyarray as pa

torch = pytest.importorskip("torch")
forward = pytest.importorskip("torch.autograd.forward_ad")


@pa.kernel
def double(v):
    for i in range(v.size):
        v[i] = 2 * v[i]


@pa.kernel
def add_to(o, v):
    for i in range(o.size):
        o[i] += v[i]


@pa.kernel
def fill(o: pa.Out[pa.BufferView[pa.float32]]):
    for i in range(o.size):
        o[i] = 3


@pa.fuse
def fused(x):
    return x * 2 + 1


def _sort(w):
    pa.from_dlpack(w).sort()


def _set_item(w):
    pa.from_dlpack(w)[1:] = 7


def _raw(w):
    text = 'extern "C" __global__ void one(float *x) { *x = 1; }'
    pa.RawKernel(text, "one")(1, 1, (pa.from_dlpack(w),))


def _saved(path, w):
    double(pa.ones(3, dtype="float32"))
    double.save(path)
    pa.load_kernel(path)(w)


OWN = pa.ones(4, dtype="float32")
WRITES = {
    "kernel": double,
    "kernel of a view": lambda w: double(pa.from_dlpack(w)[1:3]),
    "kernel of a held view": lambda w: double(pa.asarray(w).reshape(2, 2)[0]),
    "kernel, declared Out": fill,
    "kernel, second argument": lambda w: add_to(w, OWN),
    "out=": lambda w: pa.exp(OWN, out=pa.from_dlpack(w)),
    "out= of a sum": lambda w: pa.add(OWN, 1, out=pa.from_dlpack(w)),
    "in place": lambda w: pa.from_dlpack(w).__iadd__(1),
    "in place, strided": lambda w: pa.from_dlpack(w)[::2].__imul__(2),
    "set an item": _set_item,
    "set the first": lambda w: pa.from_dlpack(w).__setitem__(0, 1.0),
    "set by a list": lambda w: pa.from_dlpack(w).__setitem__([0, 1], 1.0),
    "assign": lambda w: pa.from_dlpack(w).__setitem__(..., OWN),
    "fill": lambda w: pa.from_dlpack(w).fill(1),
    "sort": _sort,
    "fused out=": lambda w: fused(OWN, out=pa.from_dlpack(w)),
    "matmul": lambda w: pa.matmul(OWN.reshape(2, 2), OWN.reshape(2, 2), out=pa.from_dlpack(w).reshape(2, 2)),
    "raw": _raw,
}


@pytest.mark.parametrize("name", WRITES)
def test_autograd_refuses_what_was_written(name):
    """Also when the write has a short way, which it has after some calls."""
    for _ in range(6):
        x, w = torch.ones(4, requires_grad=True), torch.full((4,), 5.0)
        y = (x * w).sum()
        WRITES[name](w)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_saved_kernels_tell_autograd(tmp_path):
    w = torch.ones(3)
    before = w._version
    _saved(tmp_path / "double", w)
    assert (w._version > before, w.tolist()) == (True, [2, 2, 2])


def test_tensors_that_are_copied_to_a_device_and_back_tell_autograd(device):
    w = torch.ones(4)
    before = w._version
    add_to(w, pa.ones(4, dtype="float32", device=device))
    assert (w._version > before, w.tolist()) == (True, [2, 2, 2, 2])


def test_what_is_read_counts_nothing():
    w = torch.arange(4, dtype=torch.float32)
    before = w._version
    a = pa.asarray(w)
    for _ in range(6):
        add_to(OWN.copy(), w)
        add_to(OWN.copy(), a)
        pa.exp(a)
        (a + 1)[0] = 3
        fused(a)
        a.sum().item()
        pa.from_dlpack(w, copy=True)[0] = 1
        assert np.asarray(a).tolist() == [0, 1, 2, 3]
    assert w._version == before


def test_written_tensors_of_other_kinds():
    with torch.inference_mode():
        w = torch.ones(3)  # has no counter
    double(w)
    pa.from_dlpack(w)[0] = 5
    assert w.tolist() == [5, 2, 2]
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match=r"'v' is a tensor that requires grad, .* pass .detach\(\)"):
        double(leaf)
    double(leaf.detach())
    assert (leaf._version, leaf.tolist()) == (1, [2, 2, 2])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_tensors_that_require_grad_are_taken_where_no_gradient_is_recorded(mode):
    leaf = torch.nn.Parameter(torch.ones(3))
    with mode():
        double(leaf)
        add_to(leaf, OWN[:3])
        a = pa.asarray(leaf)
        assert (pa.from_dlpack(leaf) + leaf).tolist() == [6, 6, 6]
        fused(leaf, out=pa.from_dlpack(leaf))
    assert (leaf.tolist(), leaf.requires_grad, leaf._version) == ([7, 7, 7], True, 3)
    y = (leaf * leaf).sum()
    a[0] = 1  # which is told, too
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    for take in (double, lambda x: OWN[:3] + x, pa.asarray):
        with pytest.raises((BufferError, ValueError), match=r"requires grad.*torch.no_grad\(\)"):
            take(leaf)


def test_calls_with_tensors_find_what_was_compiled():
    @pa.kernel
    def shifted(o, v, by, *, again=1):
        for i in range(o.size):
            o[i] = v[i] + by * again

    for call in (
        lambda n: shifted(torch.zeros(n), torch.ones(n), 2),
        lambda n: shifted(torch.zeros(n), torch.ones(2 * n)[::2], 2, again=2),
        lambda n: shifted(pa.zeros(n, dtype="float32"), torch.ones(n), 2),
        lambda n: shifted(torch.zeros(n), np.ones(n, np.float32), 2),
        lambda n: add_to(torch.zeros(n), torch.ones(n)),
    ):
        call(3)
        before = [k.cache_info() for k in (shifted, add_to)]
        for n in (3, 0, 5):
            call(n)
        after = [k.cache_info() for k in (shifted, add_to)]
        assert [a["misses"] - b["misses"] for a, b in zip(after, before, strict=True)] == [0, 0]
        assert sum(a["hits"] - b["hits"] for a, b in zip(after, before, strict=True)) == 3
    o = torch.zeros(3)
    shifted(o, torch.arange(3.0), 2)
    shifted(o, o, 2, again=2)
    assert (o.tolist(), o._version) == ([6, 7, 8], 2)


def test_tensors_live_as_long_as_arrays_on_them():
    w = torch.ones(3)
    gone = weakref.ref(w)
    a = pa.from_dlpack(w)[1:]
    del w
    gc.collect()
    assert gone() is not None
    a += 1
    assert a.tolist() == [2, 2]
    del a
    gc.collect()
    assert gone() is None


COMPLEX = torch.tensor([1 + 2j, 3 - 1j])
REFUSED = {
    "negative": (lambda: COMPLEX.conj().imag, r"negated when it is read; pass x.resolve_neg\(\)"),
    "conjugate": (lambda: COMPLEX.conj(), r"conjugated when it is read; pass x.resolve_conj\(\)"),
    "grad": (lambda: torch.ones(3, requires_grad=True), r"requires grad.* \.?pass .*\.detach\(\)"),
    "sparse": (lambda: torch.eye(3).to_sparse(), r"pass x.to_dense\(\)"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), r"pass x.unbind\(\)"),
    "quantized": (lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8), r"x.dequantize\(\)"),
    "meta": (lambda: torch.ones(3, device="meta"), "on the meta device"),
    "zero": (lambda: torch._efficientzerotensor(3), "has no memory"),
    "functional": (lambda: torch._to_functional_tensor(torch.ones(3)), "has no memory"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_memory_that_is_not_the_values_is_refused(name):
    make, text = REFUSED[name]
    for take in (pa.asarray, pa.from_dlpack, double, lambda x: pa.ones(2) + x):
        with pytest.raises((BufferError, ValueError), match=text):
            take(make())


def test_resolved_tensors_are_taken():
    x = COMPLEX.conj()
    assert pa.asarray(x.resolve_conj()).tolist() == [1 - 2j, 3 + 1j]
    assert pa.asarray(x.imag.resolve_neg()).tolist() == x.imag.tolist() == [-2, 1]


@pytest.mark.filterwarnings("ignore")
def test_wrapped_tensors_are_refused():
    def take(x):
        with pytest.raises(BufferError, match=r"the tensor can't be shared|has no memory"):
            pa.asarray(x)
        return x.sum()

    torch.vmap(take)(torch.ones(2, 3))
    torch.func.functionalize(take)(torch.ones(3))
    torch.func.grad(take)(torch.ones(3))
    torch.func.jvp(take, (torch.ones(3),), (torch.ones(3),))
    with forward.dual_level():
        with pytest.raises(BufferError, match=r"forward gradient.*\.unpack_dual\(x\).primal"):
            pa.asarray(forward.make_dual(torch.ones(3), torch.ones(3)))
        assert pa.asarray(torch.ones(3)).tolist() == [1, 1, 1]
