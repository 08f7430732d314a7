"""hipBLAS, hipSOLVER and hipFFT on the emulated HIP runtime: shared libraries that hip-python loads as it
loads the real ones, whose functions are NumPy's.

A library is C with one function per name in `SIGNATURES`, which hands its arguments to `_called` here; where
nobody has set that, in a process that a test started, it answers with an error. Memory of the device is read
and written by copies of the emulated runtime, in the order of the handle's stream.
"""

import ctypes
import itertools
import math
from pathlib import Path

import numpy as np

# the arguments, from the headers as hip-python quotes them: pointer, int (and enumerations), int64, char
SIGNATURES = {
    "hipblas": {
        "Create": "p", "SetStream": "pp", "*getrfBatched": "pipippi", "*getrsBatched": "piiipippipi",
    },
    "hipsolverDn": {
        "Create": "p", "SetStream": "pp", "CreateSyevjInfo": "p", "DestroySyevjInfo": "p",
        "CreateGesvdjInfo": "p", "DestroyGesvdjInfo": "p", "CreateParams": "p", "DestroyParams": "p",
        "*getrf_bufferSize": "piipip", "*getrf": "piipippp", "*getrs": "piiipippip",
        "*potrf_bufferSize": "piipip", "*potrf": "piipipip", "*potrfBatched": "piipipi",
        "*geqrf_bufferSize": "piipip", "*geqrf": "piipippip", "*gesvd_bufferSize": "piip",
        "*gesvd": "pcciipippipipipp", "*gesvdjBatched_bufferSize": "piiipippipippi",
        "*gesvdjBatched": "piiipippipipippi",
        "%orgqr_bufferSize": "piiipipp", "%orgqr": "piiipippip", "%syevd_bufferSize": "piiipipp",
        "%syevd": "piiipippip", "%syevjBatched_bufferSize": "piiipipppi", "%syevjBatched": "piiipippippi",
        "Xgeev_bufferSize": "ppiiqipqipipqipqipp", "Xgeev": "ppiiqipqipipqipqipqpqp",
    },
    "hipfft": {
        "Create": "p", "Destroy": "p", "SetStream": "pp", "SetAutoAllocation": "pi", "SetWorkArea": "pp",
        "MakePlanMany64": "pippqqpqqiqp", "ExecC2C": "pppi", "ExecZ2Z": "pppi", "ExecR2C": "ppp",
        "ExecD2Z": "ppp", "ExecC2R": "ppp", "ExecZ2D": "ppp",
    },
}  # fmt: skip
FILES = {"hipblas": "libhipblas.so", "hipsolverDn": "libhipsolver.so", "hipfft": "libhipfft.so"}
TYPES = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
C_TYPES = {"p": "void *", "i": "int", "q": "long long", "c": "signed char"}
# names of real matrices' functions that have others for complex ones
COMPLEX = {"orgqr": "ungqr", "syevd": "heevd", "syevjBatched": "heevjBatched"}
NO_VECTORS, UPPER, TRANSPOSED, PENDING = 201, 121, 112, 8


def names(prefix):
    """(full name, name of the emulation, type or None, signature) of each function of a library."""
    for name, signature in SIGNATURES[prefix].items():
        for letter, kind in TYPES.items() if name[0] in "*%" else [("", None)]:
            base, query = name.lstrip("*%").removesuffix("_bufferSize"), name.endswith("_bufferSize")
            shown = COMPLEX[base] if name[0] == "%" and letter in "CZ" else base
            tail = "_bufferSize" if query else ""
            yield f"{prefix}{letter}{shown}{tail}", base + tail, kind, signature


def text(prefix):
    """C of a library."""
    lines = [
        "static int (*called)(int, const long long *);",
        "void setCalled(int (*by)(int, const long long *)) { called = by; }",
    ]
    for number, (name, _, _, signature) in enumerate(names(prefix)):
        given = ", ".join(f"{C_TYPES[c]}a{k}" if c == "p" else f"{C_TYPES[c]} a{k}" for k, c in enumerate(signature))
        packed = ", ".join(f"(long long)a{k}" for k in range(len(signature)))
        lines.append(
            f"int {name}({given}) {{ long long a[] = {{{packed}}}; return called ? called({number}, a) : 6; }}"
        )
    return "\n".join(lines) + "\n"


_handles = itertools.count(1 << 20, 64)
_streams: dict[int, int] = {}
_plans: dict[int, tuple] = {}
_runtime = None
_kept = []  # what C calls
calls: list[str] = []  # names of the functions called, the work space queries left out


def use_libraries(folder: Path, runtime: ctypes.CDLL) -> None:
    """From now on, the libraries in `folder` compute in this process."""
    global _runtime
    _runtime = runtime
    for name in ("hipMemcpyDtoHAsync", "hipMemcpyHtoDAsync"):
        getattr(runtime, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    runtime.hipStreamSynchronize.argtypes = [ctypes.c_void_p]
    answer = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_longlong))
    for prefix, file in FILES.items():
        rows = list(names(prefix))

        def called(number, given, rows=rows):
            name, emulation, kind, signature = rows[number]
            args = [given[k] for k in range(len(signature))]
            try:
                _call(name, emulation, kind, args)
            except Exception as error:
                print(f"emulated {name}: {type(error).__name__}: {error}")
                return 7
            return 0

        _kept.append(answer(called))
        ctypes.CDLL(str(folder / file)).setCalled(_kept[-1])


def _call(name, emulation, kind, args):
    if not emulation.endswith("_bufferSize"):
        calls.append(name)
    if emulation.startswith("Create"):
        _put(args[0], ctypes.c_void_p, next(_handles))
    elif emulation == "SetStream":
        _streams[args[0]] = args[1]
    elif emulation.endswith("_bufferSize"):
        _buffer_size(emulation, args)
    elif emulation.startswith(("MakePlan", "Exec")):
        (_make_plan if emulation[0] == "M" else _transform)(emulation, args)
    elif not emulation.startswith(("Destroy", "Set")):
        FUNCTIONS[emulation](_Device(_streams[args[0]], kind), *args[1:])


def _put(place, kind, value):
    kind.from_address(place).value = value


def _buffer_size(emulation, args):
    if emulation.startswith("X"):
        for place in args[-2:]:
            _put(place, ctypes.c_size_t, 8)
        return
    # before the parameters and the number of matrices, where there are such
    _put(args[-3 if "jBatched" in emulation else -1], ctypes.c_int, 16)


class _Device:
    """Memory of the device, in the order of a stream; matrices are by columns."""

    def __init__(self, stream, kind):
        self.stream, self.kind = stream, np.dtype(kind) if kind else None

    def read(self, place, count, kind=None):
        out = np.empty(count, kind or self.kind)
        self._done(_runtime.hipMemcpyDtoHAsync(out.ctypes.data, place, out.nbytes, self.stream))
        return out

    def write(self, place, values, kind=None):
        values = np.ascontiguousarray(values, kind or self.kind)
        self._done(_runtime.hipMemcpyHtoDAsync(place, values.ctypes.data, values.nbytes, self.stream))

    def _done(self, code):
        if code or _runtime.hipStreamSynchronize(self.stream):
            raise RuntimeError(f"error {code} of a copy")

    def matrix(self, place, rows, columns, leading):
        assert leading >= rows
        return self.read(place, leading * columns).reshape(columns, leading).T[:rows].copy()

    def put(self, place, matrix, leading):
        assert leading == matrix.shape[0]
        self.write(place, matrix.T)

    def touched(self, place, count):
        """Work space, which the library may fill with anything."""
        if place and count:
            self.write(place, np.full(count, np.nan))

    @property
    def real(self):
        return np.empty(0, self.kind).real.dtype


def _lu(a):
    """Factors in one matrix, pivots from 1, the first zero on the diagonal from 1, or 0."""
    a, n, bad = a.copy(), len(a), 0
    pivots = np.arange(1, n + 1, dtype=np.int32)
    for k in range(n):
        top = k + int(np.argmax(np.abs(a[k:, k])))
        pivots[k] = top + 1
        a[[k, top]] = a[[top, k]]
        if a[k, k] == 0:
            bad = bad or k + 1
            continue
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, pivots, bad


def getrf(d, m, n, a, lda, work, pivots, info):
    d.touched(work, 16)
    factors, found, bad = _lu(d.matrix(a, m, n, lda))
    d.put(a, factors, lda)
    d.write(pivots, found, np.int32)
    d.write(info, [bad], np.int32)


def getrs(d, trans, n, right, a, lda, pivots, b, ldb, info):
    factors, b_values = d.matrix(a, n, n, lda), d.matrix(b, n, right, ldb)
    whole = (np.tril(factors, -1) + np.eye(n)) @ np.triu(factors)
    for k, p in reversed(list(enumerate(d.read(pivots, n, np.int32)))):
        whole[[k, p - 1]] = whole[[p - 1, k]]
    d.put(b, np.linalg.solve(whole.T if trans == TRANSPOSED else whole, b_values), ldb)
    if info:
        d.write(info, [0], np.int32)


def getrf_batched(d, n, places, lda, pivots, info, count):
    for k, place in enumerate(d.read(places, count, np.uint64)):
        getrf(d, n, n, int(place), lda, 0, pivots + 4 * n * k, info + 4 * k)


def getrs_batched(d, trans, n, right, places, lda, pivots, others, ldb, info, count):
    both = [d.read(x, count, np.uint64) for x in (places, others)]
    for k, (a, b) in enumerate(zip(*both, strict=True)):
        getrs(d, trans, n, right, int(a), lda, pivots + 4 * n * k, int(b), ldb, 0)
    _put(info, ctypes.c_int, 0)


def potrf(d, triangle, n, a, lda, work, size, info):
    d.touched(work, size)
    x, bad = d.matrix(a, n, n, lda), 0
    part = np.triu if triangle == UPPER else np.tril
    half = part(x, 1 if triangle == UPPER else -1)
    whole = half + half.conj().T + np.diag(x.diagonal().real)
    try:
        lower = np.linalg.cholesky(whole)
        d.put(a, np.where(part(np.ones((n, n))), lower.conj().T if triangle == UPPER else lower, x), lda)
    except np.linalg.LinAlgError:
        bad = 1
    d.write(info, [bad], np.int32)


def potrf_batched(d, triangle, n, places, lda, info, count):
    for k, place in enumerate(d.read(places, count, np.uint64)):
        potrf(d, triangle, n, int(place), lda, 0, 0, info + 4 * k)


def geqrf(d, m, n, a, lda, tau, work, size, info):
    d.touched(work, size)
    reflectors, factors = np.linalg.qr(d.matrix(a, m, n, lda), mode="raw")
    d.put(a, reflectors.T, lda)
    d.write(tau, factors)
    d.write(info, [0], np.int32)


def orgqr(d, m, n, k, a, lda, tau, work, size, info):
    assert m >= n >= k
    d.touched(work, size)
    reflectors, factors = d.matrix(a, m, n, lda), d.read(tau, k)
    q = np.eye(m, dtype=d.kind)
    for j in range(k):
        v = np.concatenate([np.zeros(j), [1], reflectors[j + 1 :, j]])
        q = q @ (np.eye(m) - factors[j] * np.outer(v, v.conj()))
    d.put(a, q[:, :n], lda)
    d.write(info, [0], np.int32)


def gesvd(d, left, right, m, n, a, lda, s, u, ldu, vh, ldvh, work, size, rwork, info):
    assert m >= n, "the library takes no wide matrices"
    assert left == right
    d.touched(work, size)
    found = np.linalg.svd(d.matrix(a, m, n, lda), full_matrices=left == ord("A"))
    d.write(s, found[1], d.real)
    if left != ord("N"):
        d.put(u, found[0], ldu)
        d.put(vh, found[2], ldvh)
    d.write(info, [0], np.int32)


def gesvdj_batched(d, job, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, setting, count):
    assert m <= 32 >= n
    step = d.kind.itemsize
    for k in range(count):
        found = np.linalg.svd(d.matrix(a + k * m * n * step, m, n, lda))
        d.write(s + k * min(m, n) * d.real.itemsize, found[1], d.real)
        if job != NO_VECTORS:
            d.put(u + k * m * m * step, found[0], ldu)
            d.put(v + k * n * n * step, found[2].conj().T, ldv)
        d.write(info + 4 * k, [0], np.int32)


def syevd(d, job, triangle, n, a, lda, w, work, size, info):
    d.touched(work, size)
    values, vectors = np.linalg.eigh(d.matrix(a, n, n, lda), "U" if triangle == UPPER else "L")
    d.write(w, values, d.real)
    if job != NO_VECTORS:
        d.put(a, vectors, lda)
    d.write(info, [0], np.int32)


def syevj_batched(d, job, triangle, n, a, lda, w, work, size, info, setting, count):
    for k in range(count):
        place = a + k * n * n * d.kind.itemsize
        syevd(d, job, triangle, n, place, lda, w + k * n * d.real.itemsize, work, size, info + 4 * k)


def geev(d, params, left, right, n, kind, a, lda, _, w, __, vl, ldvl, ___, v, ldv, *rest):
    d.kind = np.dtype({4: np.complex64, 5: np.complex128}[kind])
    assert left == NO_VECTORS
    values, vectors = np.linalg.eig(d.matrix(a, n, n, lda))
    d.write(w, values)
    if right != NO_VECTORS:
        d.put(v, vectors, ldv)
    d.write(rest[-1], [0], np.int32)


FUNCTIONS = {
    "getrf": getrf, "getrs": getrs, "getrfBatched": getrf_batched, "getrsBatched": getrs_batched,
    "potrf": potrf, "potrfBatched": potrf_batched, "geqrf": geqrf, "orgqr": orgqr, "gesvd": gesvd,
    "gesvdjBatched": gesvdj_batched, "syevd": syevd, "syevjBatched": syevj_batched, "Xgeev": geev,
}  # fmt: skip


def _make_plan(emulation, args):
    plan, rank, sizes, inner, _, _, outer, _, _, _, batch, nbytes = args
    assert inner == outer == 0, "memory without gaps"
    _plans[plan] = tuple((ctypes.c_longlong * rank).from_address(sizes)), batch
    _put(nbytes, ctypes.c_size_t, 64)


def _transform(emulation, args):
    sizes, batch = _plans[args[0]]
    kind = emulation.removeprefix("Exec")
    real, whole = (np.float32, np.complex64) if "C" in kind else (np.float64, np.complex128)
    device = _Device(_streams[args[0]], None)
    axes, half = tuple(range(1, len(sizes) + 1)), (*sizes[:-1], sizes[-1] // 2 + 1)
    of_real, to_real = kind in ("R2C", "D2Z"), kind in ("C2R", "Z2D")
    shape = half if to_real else sizes
    x = device.read(args[1], batch * math.prod(shape), real if of_real else whole).reshape(batch, *shape)
    if of_real:
        found = np.fft.rfftn(x, axes=axes)
    elif to_real:
        found = np.fft.irfftn(x, s=sizes, axes=axes, norm="forward")
        device.write(args[1], np.full(x.shape, np.nan), whole)  # as the library may
    else:
        forward = args[3] == -1
        found = (np.fft.fftn if forward else np.fft.ifftn)(x, axes=axes, norm="backward" if forward else "forward")
    device.write(args[2], found, real if to_real else whole)
