"""Calls of the vendors' math libraries: that the functions exist under the names used, that what is passed
fits the real bindings, and what goes to NVIDIA's, recorded."""

import dataclasses
import importlib
import inspect
import re

import numpy as np
import pytest
from hip_emulator import libraries as emulated

import pyarray as pa
from pyarray.api.libraries import bindings, solver

NAMES = [
    ("blas", "dgetrf_batched", "hipblasDgetrfBatched"),
    ("solver", "create_syevj_info", "hipsolverDnCreateSyevjInfo"),
    ("solver", "cgesvdj_batched_buffer_size", "hipsolverDnCgesvdjBatched_bufferSize"),
    ("solver", "xgeev_buffer_size", "hipsolverDnXgeev_bufferSize"),
    ("fft", "exec_z2d", "hipfftExecZ2D"),
    ("fft", "make_plan_many64", "hipfftMakePlanMany64"),
]


@pytest.mark.parametrize(("part", "name", "expected"), NAMES)
def test_a_call_has_amds_name_by_rule(part, name, expected):
    vendor = bindings.VENDORS["hip"]
    assert vendor.spelled(vendor.libraries[part][2], name) == expected


def module_of(prefix):
    return pytest.importorskip(f"rocm.bindings.{prefix.removesuffix('Dn')}")


def codes(function):
    """The arguments by the C signature that hip-python quotes, as `SIGNATURES` writes them."""
    text = re.search(r"code-block:: c\s+(.*)", function.__doc__, re.DOTALL)[1]
    given = re.search(r"\((.*)\)", text, re.DOTALL)[1].split(",")
    pointer, wide = r"\*|\[\]|(Handle(_t)?|Stream_t|Info_t|Params_t) ", r"size_t |int64_t |long long "
    return "".join(
        "p" if re.search(pointer, a) else "q" if re.search(wide, a) else "c" if "char " in a else "i" for a in given
    )


@pytest.mark.parametrize("prefix", emulated.SIGNATURES)
def test_the_emulated_libraries_have_the_signatures_of_the_real_ones(prefix):
    module = module_of(prefix)
    for name, _, _, signature in emulated.names(prefix):
        assert codes(getattr(module, name)) == signature, name


@pytest.mark.parametrize("name", bindings.VENDORS["hip"].constants)
def test_amds_constants_are_members_of_enumerations(name):
    pytest.importorskip("rocm.bindings.hipsolver")
    assert isinstance(int(bindings.constant("hip", name)), int)
    assert not isinstance(bindings.VENDORS["hip"].constants[name], int)


@pytest.mark.parametrize("vendor", bindings.VENDORS.values(), ids=list(bindings.VENDORS))
def test_the_rows_know_the_same_constants_and_libraries(vendor):
    assert vendor.constants.keys() == bindings.VENDORS["cuda"].constants.keys()
    assert vendor.libraries.keys() == {"blas", "solver", "fft"}


def test_nvidias_constants_are_those_of_its_enumerations():
    """And the names called are functions there."""
    pytest.importorskip("nvmath")
    load = importlib.import_module
    blas, solver, fft = (load(f"nvmath.bindings.{name}") for name in ("cublas", "cusolver", "cufft"))
    value = bindings.VENDORS["cuda"].constants
    assert (value["as_is"], value["transposed"]) == (blas.Operation.N, blas.Operation.T)
    assert (value["lower"], value["upper"]) == (blas.FillMode.LOWER, blas.FillMode.UPPER)
    assert (value["values"], value["vectors"]) == (solver.EigMode.NOVECTOR, solver.EigMode.VECTOR)
    assert all(value[kind.name.lower()] == kind for kind in fft.Type)
    for part, (_, module, _) in bindings.VENDORS["cuda"].libraries.items():
        for name in CALLED[part]:
            assert callable(getattr(load(f"nvmath.bindings.{module}"), name)), name


CALLED = {
    "blas": ["create", "set_stream", *(f"{t}get{f}_batched" for t in "sdcz" for f in ("rf", "rs"))],
    "solver": [
        *("create", "set_stream", "create_params", "destroy_params", "create_syevj_info"),
        *("destroy_syevj_info", "create_gesvdj_info", "destroy_gesvdj_info", "xgeev", "xgeev_buffer_size"),
        *(f"{t}{f}" for t in "sdcz" for f in ("getrf", "getrs", "potrf", "potrf_batched", "geqrf", "gesvd")),
        *(f"{t}gesvdj_batched" for t in "sdcz"),
        *(f"{t}{f}" for t in "sd" for f in ("orgqr", "syevd", "syevj_batched")),
        *(f"{t}{f}" for t in "cz" for f in ("ungqr", "heevd", "heevj_batched")),
    ],
    "fft": [
        *("create", "destroy", "set_stream", "set_auto_allocation", "set_work_area", "make_plan_many64"),
        *(f"exec_{kind}" for kind in ("c2c", "z2z", "r2c", "d2z", "c2r", "z2d")),
    ],
}


def test_every_call_of_the_sources_is_in_the_list():
    """So that the names above are all that is to be there."""
    source = "".join(
        inspect.getsource(importlib.import_module(f"pyarray.api.libraries.{name}")) for name in ("solver", "transforms")
    )
    said = set(re.findall(r'(?:lib|call)\((?:device, "\w+", )?f?"(\w+)"', source))
    known = {name for names in CALLED.values() for name in names}
    known |= {name[1:] for name in known} | {f"{name}_buffer_size" for name in known | {n[1:] for n in known}}
    assert said
    assert said <= known


class Recorder:
    """A binding as nvmath's, whose functions note their names."""

    def __init__(self, answers):
        self.said, self.answers = [], answers

    def __getattr__(self, name):
        def function(*args):
            self.said.append((name, args))
            return self.answers.get(name, 0)

        return function


def test_nvidias_functions_get_handle_and_letter(monkeypatch):
    recorder = Recorder({"create": 77, "zgeqrf_buffer_size": 5})
    row = bindings.VENDORS["cuda"]
    monkeypatch.setitem(bindings.VENDORS, "null", dataclasses.replace(row, load=lambda name: recorder))
    bindings._function.cache_clear()
    bindings._free.clear()
    a = pa.empty((2, 3, 4), dtype=np.complex128, device="null:0")
    try:
        tau, info = solver.qr(a)
    finally:
        bindings._function.cache_clear()
        bindings._free.clear()
    assert (tau.shape, info.shape, info.dtype) == ((2, 3), (2,), "int32")
    names = [name for name, _ in recorder.said]
    assert names == ["create", "set_stream", "zgeqrf_buffer_size", "zgeqrf", "zgeqrf"]
    assert recorder.said[2][1] == (77, 4, 3, a._ptr, 4)
    first, second = (args for name, args in recorder.said if name == "zgeqrf")
    assert first[:3] == (77, 4, 3)
    assert (first[3], second[3]) == (a._ptr, a._ptr + 12 * 16)
    assert (first[8], second[8]) == (info._ptr, info._ptr + 4)
    assert first[7] == 5
