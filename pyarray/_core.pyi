"""The types below arrays, in C: `csrc/core`."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from pyarray.dtypes import DType

CAPTURED_AT: int  # of equal calls without a plan, the one that is captured
MOST_PLANS: int  # of a function; then its table starts anew

class FreeList:
    """Free blocks of one size class of one pool. `returns` is called with (list, address) in place of keeping a
    block, `takes` with (list) in place of taking one, where they are not None; but while what is reserved is `within`
    its limit, blocks are kept. `zeroed`: blocks that the device has just allocated hold zeros."""

    size: int
    pool: Any
    returns: Callable[[FreeList, int], None] | None
    takes: Callable[[FreeList], int] | None
    within: FreeLists | None
    zeroed: bool
    def __init__(self, pool: Any, size: int) -> None: ...
    def append(self, ptr: int, /) -> None: ...
    def pop(self) -> int: ...
    def keep(self, ptr: int, /) -> None: ...
    def take(self) -> int: ...
    def __len__(self) -> int: ...

class FreeLists:
    """Number of bytes -> free list of a pool, found once for each size class. `reserved`: bytes that the pool has from
    the device; blocks go back to it from `limit` on."""

    pool: Any
    reserved: int
    limit: int
    def __init__(self, pool: Any, find: Callable[[int], FreeList]) -> None: ...
    def __getitem__(self, nbytes: int, /) -> FreeList: ...

class Buffer:
    """`nbytes` of memory of `device` at address `ptr`, which is never 0 for pyarray's own memory."""

    device: Any
    ptr: int
    nbytes: int
    owner: Any
    arrays: int
    escaped: bool
    previous: Buffer | None
    before_write: Callable[[], None] | Any
    gradient: Any
    @staticmethod
    def allocate(device: Any, nbytes: int, /) -> Buffer: ...
    @staticmethod
    def wrap(device: Any, ptr: int, nbytes: int, owner: Any, /) -> Buffer: ...

class Array:
    """The type below ndarray: a typed, strided window on a buffer."""

    _buffer: Buffer
    _base: Any
    _key: int
    @property
    def _ptr(self) -> int: ...
    @property
    def _shape(self) -> tuple[int, ...]: ...
    @property
    def _strides(self) -> tuple[int, ...]: ...
    @property
    def _size(self) -> int: ...
    @property
    def _dtype(self) -> DType: ...
    @property
    def _writeable(self) -> bool: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def ndim(self) -> int:
        """Number of axes."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements: NumPy's, or bfloat16 of ml_dtypes."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, gaps not counted."""
    @property
    def device(self) -> Any:
        """Where the memory is."""
    @property
    def base(self) -> Any:
        """The array whose memory this view shows; never itself a view. None for an array of its own."""
    @property
    def byte_offset(self) -> int:
        """Bytes from the start of the buffer to the first element."""
    def _view(
        self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], run: Any = None, dtype: DType | None = None
    ) -> Any: ...
    def _handle(self, key: int, /) -> Any: ...
    def _relayout(
        self, buffer: Buffer, ptr: int, shape: tuple[int, ...], strides: tuple[int, ...], key: int, /
    ) -> None: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __len__(self) -> int: ...
    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Map:
    """An elementwise operation with its plans, by types of operands. `resolve(operands, out)` gives the codes of the
    common dtype and of the result's, or None; `compile(operands, out, domain, views, ndim, tiled)` a launch."""

    def __init__(
        self,
        resolve: Callable[[tuple[Any, ...], Any], tuple[int, int] | None],
        compile: Callable[..., tuple[int, int, Any, Any]],
    ) -> None: ...
    def run(self, out: Any, /, *operands: Any) -> Any: ...
    def assign(self, out: Any, operand: Any, /) -> Any: ...
    def explain(self, out: Any, /, *operands: Any) -> str | None: ...
    def cache_info(self) -> dict[str, int]: ...

class BoundLaunch:
    """A launch for arrays of known shapes and strides, called with addresses (or arrays) and numbers. `launch` is as
    `jit.launch.native_launch` gives it; `slots` are all argument slots with what is known; `arguments` says where those
    of a call go: (slot, code of a number's dtype or -1, bytes from an address); `pack(code, number)` packs the numbers
    that C doesn't."""

    def __init__(
        self,
        launch: tuple[int, int, Any, Any],
        slots: bytes,
        arguments: tuple[tuple[int, int, int], ...],
        size: int,
        pack: Callable[[int, Any], bytes],
        /,
    ) -> None: ...
    def __call__(self, *arguments: Any) -> None: ...

class CallPlan:
    """What a warm call does. A number is an integer or is read from the call: ("operand", k, bytes) and ("buffer", k,
    bytes) are addresses, ("dim", k, axis, factor) and ("stride", k, axis, factor) of an operand, ("size", k, 0) its
    number of elements, ("quotient", k, divisor, most), ("number", k, code of the dtype).

    `buffers` are the factors of their bytes. A step is (launch, ((slot, number), ...), factors of its work) or (check,
    address, code of the dtype, number of elements). The result is None, ("operand", k), ("list", items), ("tuple",
    items), ("named", class, items) or ("array", buffer, key, sizes, strides or None for C order, view or None) with
    a view (offset, sizes, strides, code of the dtype, whether it is a BufferView). `written` are operands. With
    `conditions` the plan is for all calls with operands of these types where they hold: (low, high, factors), or
    ("equal", number, number). `numbers` is a function of the call's numbers, which gives so many further ones, and
    raises for those that the general way is to refuse."""

    def __init__(
        self,
        operands: int,
        buffers: tuple[tuple[Any, ...], ...],
        steps: tuple[tuple[Any, ...], ...],
        result: Any,
        written: tuple[int, ...],
        conditions: tuple[tuple[Any, ...], ...] | None,
        numbers: tuple[Callable[..., tuple[Any, ...]], int] | None = None,
        /,
    ) -> None: ...

class PlanTable:
    """A function's plans by its calls. `learn(function, args, options, operands)` calls the function, and gives its
    result with a plan or with why there is none. `numbers` has a bit for each position of which Python's numbers are
    operands; if there are any, those of keywords are, but `without` these."""

    def __init__(
        self,
        function: Callable[..., Any],
        learn: Callable[..., tuple[Any, CallPlan | str]],
        numbers: int,
        without: tuple[str, ...],
        /,
    ) -> None: ...
    def cache_info(self) -> dict[str, int]: ...
    def clear(self) -> None: ...
    def entries(self) -> list[tuple[list[Any], CallPlan | str]]: ...
    def find(self, *args: Any, **options: Any) -> tuple[Any, Any]: ...

class PlannedFunction:
    """A function whose warm calls are plans."""

    __name__: str
    plan_table: PlanTable
    def __init__(self, table: PlanTable, /) -> None: ...
    def __call__(self, *args: Any, **options: Any) -> Any: ...
    def __get__(self, instance: Any, owner: type | None = None, /) -> Any: ...
    def cache_info(self) -> dict[str, int]: ...
    def explain_miss(self, /, *args: Any, **options: Any) -> str | None: ...

class QuickFunction:
    """The function `general`, with a quick way in C of that name. Its attributes are the function's."""

    __dict__: dict[str, Any]
    def __init__(self, name: str, general: Callable[..., Any], /) -> None: ...
    def __call__(self, *args: Any, **options: Any) -> Any: ...

class Launcher:
    """Packs the arguments of a variant and launches. `launch` is a `driver.base.NativeLaunch`; `fields` has a row for
    each parameter with slots: number of its argument, dtype code of a number or -1, rank, strided, written, and sizes
    that are compiled in, -1 for others, if there are any; `offsets`: arrays have a slot for that; `extents` is a
    program of `lang.loop_extents.encoded`, and where a product may overflow `check_extents` is called with the
    arguments."""

    sites: Any
    def __init__(
        self,
        launch: tuple[int, int, Any, Any],
        arguments: int,
        fields: tuple[tuple[Any, ...], ...],
        offsets: bool,
        extents: tuple[int, ...],
        check_extents: Callable[..., None] | None,
        /,
    ) -> None: ...
    def __call__(self, *arguments: Any) -> Any: ...

class VariantTable:
    """Launchers by the keys of their arguments, which `TreeDef.key` makes."""

    hits: int
    def get(self, key: Any, /) -> Any: ...
    def put(self, key: Any, launcher: Any, /) -> None: ...
    def clear(self) -> None: ...
    def items(self) -> list[tuple[Any, Any]]: ...
    def hit(self) -> None: ...
    def __contains__(self, key: Any, /) -> bool: ...
    def __len__(self) -> int: ...

class TreeDef:
    """How arguments of one pytree are flattened, and the key of their leaves is made."""

    def __init__(
        self, items: tuple[tuple[Any, ...], ...], static_key: Callable[[Any], Any], is_plain: bool, /
    ) -> None: ...
    def key(self, checked: bool, leaves: tuple[Any, ...], /) -> Any: ...

class Dispatcher:
    """Below kernels: a call finds the launcher of its variant, and launches. The class above has `_prepare()`, called
    at the first call; `_miss(args)` for what isn't found; `_refused(args)` for what can't be packed; `_report(failure,
    launcher)`; `_wrong(args, kwargs)`, which raises the error of a call that doesn't fit the signature."""

    __name__: str
    def __call__(self, /, *args: Any, **kwargs: Any) -> None: ...
    def _set_parameters(
        self, names: tuple[str, ...], positional: int, defaults: tuple[Any, ...], debug: bool | None, /
    ) -> None: ...
    def _set_variants(
        self, table: VariantTable, treedefs: tuple[TreeDef, ...], captures: tuple[tuple[Any, Any, Any], ...], /
    ) -> None: ...

def register_assignment(map: Map, /) -> None: ...
def register_operator(name: str, map: Map, function: Callable[..., Any], /) -> None: ...
def register_power(exponent: float, map: Map, /) -> None: ...
def connect(pa_launch: int, /) -> None: ...
def connect_gpu(pa_gpu_launch: int, /) -> None: ...
def clear_plans() -> None: ...
def unchecked_array(
    buffer: Buffer,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    size: int,
    dtype: DType,
    key: int,
    ptr: int = ...,
    /,
) -> Any: ...
def register_devices(
    kind: type, find: Callable[..., Any], scoped: Any, overrides: dict[str, Any], environment: Any, /
) -> None: ...
def load_element(array: Array, /) -> Any: ...
def register_dtypes(rows: tuple[DType, ...], asdtype: Callable[[Any], DType], /) -> None: ...
def register_pools(function: Callable[[Any], Any], /) -> None: ...
def register_array(kind: type, /) -> None: ...
def register_view(kind: type, /) -> None: ...
def register_indexing(
    get: Callable[[Any, Any], Any], put: Callable[[Any, Any, Any], None], integers: tuple[type, ...], /
) -> None: ...
def set_process_state(observers: int, debug: bool, /) -> None: ...
def set_thread_observed(observed: bool, /) -> None: ...
def set_thread_debug(debug: bool | None, /) -> None: ...
def host_access_occurred() -> bool: ...
def set_host_access(occurred: bool, /) -> None: ...
def aliases(array: Array, out: Array, /) -> bool:
    """Whether writing `out` changes elements of `array` that are read later: it has bytes of it, in another layout."""

def host_nonzero(array: Array, /) -> Any: ...
def register_foreign(
    cpu: Any,
    facts: Callable[[type], Any],
    stream: Callable[[Any], int],
    scoped_default: ContextVar[Any],
    settings: dict[str, Any],
    /,
) -> None: ...
def register_dlpack(cpu: Any, device_at: Callable[[int, int], Any], aligned: Callable[[Any], Any], /) -> None: ...
def register_export(
    general: Callable[..., Any],
    before: Callable[[Any, Any], None],
    numbers: Callable[[Any], tuple[int, int]],
    /,
) -> None: ...
def foreign_array(x: Any, /) -> Any: ...
def foreign_uses() -> int: ...
def from_capsule(capsule: Any, before_write: Callable[[], None] | None = None, /) -> Any: ...
def capsule_fields(capsule: Any, /) -> tuple[int, tuple[Any, ...]] | None: ...
def export_capsule(array: Array, versioned: bool, copied: bool, /) -> Any: ...
