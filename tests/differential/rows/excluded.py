"""Public functions that take arrays and have no row, with the reason; and names that take none."""

from __future__ import annotations

EXCLUDED: dict[str, str] = {}

_REASONS = {
    "writes, reads or prints text or files": (
        "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile fromstring array2string "
        "array_repr array_str ndarray.tofile ndarray.__bytes__ base_repr binary_repr "
        "format_float_positional format_float_scientific get_printoptions set_printoptions "
        "printoptions typename"
    ),
    "takes no arrays": (
        "arange linspace logspace geomspace eye identity ones zeros empty full indices tri bartlett "
        "blackman hamming hanning kaiser diag_indices tril_indices triu_indices mask_indices "
        "fromfunction fromiter frombuffer broadcast_shapes seterr geterr fft.fftfreq fft.rfftfreq "
        "get_device get_default_device set_default_device default_device show_config cache_info "
        "get_default_memory_pool "
        "transfer_info current_stream synchronize debug iinfo issubdtype isdtype promote_types"
    ),
    "gives facts about types and layouts, which are tested one by one": (
        "get_array_module "
        "can_cast result_type finfo min_scalar_type common_type isscalar iscomplexobj isrealobj "
        "isfortran iterable ndim shape size may_share_memory shares_memory ndarray.flags "
        "ndarray.setflags ndarray.data ndarray.base ndarray.byte_offset ndarray.device ndarray.dtype "
        "ndarray.itemsize ndarray.nbytes ndarray.ndim ndarray.shape ndarray.size ndarray.strides "
        "ndarray.__len__"
    ),
    "is a part of the kernel language, of kernels or of their tools": (
        "kernel func fuse autotune ndrange rng tiles unordered atomic_add atomic_and atomic_cas atomic_exchange "
        "atomic_max atomic_min atomic_or atomic_sub atomic_xor dump dump_tag load_dump load_kernel "
        "capture cost_analysis gemm ndarray.mark_static ndarray.assume ndarray.attach_grad ndarray.grad "
        "quaternion.conjugate quaternion.from_axis_angle quaternion.identity quaternion.inverse quaternion.multiply "
        "quaternion.normalize quaternion.rotate quaternion.slerp quaternion.to_matrix"
    ),
    "is exchange with other libraries and devices, tested in tests/interop": (
        "asnumpy from_dlpack ndarray.get ndarray.to_device ndarray.__array__ "
        "ndarray.__array_function__ ndarray.__array_ufunc__ ndarray.__array_namespace__ "
        "ndarray.__dlpack__ ndarray.__dlpack_device__"
    ),
    "calls Python for each part, which is the caller's code": (
        "apply_along_axis apply_over_axes piecewise ndenumerate"
    ),
    "has contents that are arbitrary, or an order that is": (
        "empty_like argpartition ndarray.argpartition ndarray.partition"
    ),
    "gives one element to Python, or is a protocol of Python's": (
        "ndarray.item ndarray.__bool__ ndarray.__int__ ndarray.__float__ ndarray.__complex__ "
        "ndarray.__index__ ndarray.__round__ ndarray.__ceil__ ndarray.__floor__ ndarray.__trunc__ "
        "ndarray.__iter__ ndarray.__copy__ ndarray.__deepcopy__ ndarray.__class_getitem__ ndarray.__getattr__ "
        "ndarray.__delitem__"
    ),
    "gives a view with other strides or changes an array in place, tested in tests/unit/test_array.py": (
        "ndarray.subview ndarray.view ndarray.flat ndarray.resize ndarray.T ndarray.mT ndarray.real "
        "ndarray.imag asfortranarray tril_indices_from triu_indices_from diag_indices_from"
    ),
    "is ill-conditioned where signs of zero or roots decide, tested by its inverse": ("roots poly polydiv polyfit"),
    "has no like in NumPy, and is compared with a formula in tests/device/test_attention.py": (
        "nn.attention nn.attention_backward"
    ),
    "has no like in NumPy, and is compared with a loop in tests/device/test_grouped_matmul.py": (
        "nn.grouped_matmul nn.grouped_matmul_backward"
    ),
    "gives a plan and no values": "einsum_path",
    "is a synonym that shares its code": "in1d row_stack ndarray.ptp",
}
for _reason, _names in _REASONS.items():
    for _name in _names.split():
        EXCLUDED[_name] = _reason
