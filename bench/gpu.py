"""GPUs: bandwidth of elementwise kernels, transposes and reductions next to a copy's; matrix products.

`python -m bench.gpu [--json PATH]`; nothing is measured where there is no GPU. Times are medians between
events of the device, on arrays that the libraries share. torch is needed, for events and as a peer.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import pyarray as pa

from . import peers, rows
from .timing import Figure, Row, Times, aligned

ABOUT = """Time on the device, by its events: elementwise kernels, transposes and reductions next to PyTorch
and CuPy, matrix products and attention next to PyTorch's libraries, on arrays that the libraries share."""
SIZE, SIDE = 1 << 28, 1 << 14
PRODUCTS = (
    ("float32", (1024, 1024, 1024)), ("float32", (1536, 1536, 1536)), ("float32", (4096, 4096, 4096)),
    ("float32", (8192, 8192, 8192)), ("float32", (1024, 1024, 8192)),
    ("float32", (4095, 4097, 4099)), ("float64", (4096, 4096, 4096)), ("float64", (4095, 4097, 4099)),
    ("tf32", (1024, 1024, 1024)), ("tf32", (2048, 2048, 2048)), ("tf32", (4096, 4096, 4096)),
    ("tf32", (8192, 8192, 8192)), ("tf32", (4095, 4097, 4099)), ("int8", (2048, 2048, 2048)),
    ("int8", (4096, 4096, 4096)), ("int8", (8192, 8192, 8192)), ("float8_e4m3fn", (2048, 2048, 2048)),
    ("float8_e4m3fn", (4096, 4096, 4096)), ("float8_e4m3fn", (8192, 8192, 8192)),
    ("float16", (4096, 4096, 4096)), ("bfloat16", (1024, 1024, 1024)), ("bfloat16", (2048, 2048, 2048)),
    ("bfloat16", (4096, 4096, 4096)), ("bfloat16", (8192, 8192, 8192)), ("bfloat16", (4095, 4097, 4099)),
)  # fmt: skip
# least ratios to reach: to the copy, or to torch
OF_COPY = {
    "add": 0.97,
    "sliced add": 0.97,
    "one kernel": 0.97,
    "sum": 0.95,
    "sum axis 0": 0.95,
    "sum axis 1": 0.95,
}
OF_TORCH = {"a.T copied": 1.7, "a.T + b": 1.7}
DEBUG = 0.9  # of release


@pa.kernel
def wave(a, b, c):
    for i in range(c.size):
        c[i] = a[i] * b[i] + pa.sin(a[i]) * pa.exp(-b[i] * b[i])


@pa.kernel
def scale(v, factor):
    for i in range(v.size):
        v[i] = v[i] * factor


@pa.kernel
def flatten(out, m):
    for i in range(out.size):
        out[i] = m[i // m.shape[1], i % m.shape[1]]


def seconds(torch: Any, call: Callable[[], Any], calls: int) -> float:
    """Of a call on the device, of so many one after the other."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / calls


def timer(torch: Any, quick: bool, calls: int = 1) -> Callable[[Callable[[], Any]], Times]:
    """Seconds of a call on the device, of so many one after the other: least and median of several."""

    def measure(call: Callable[[], Any]) -> Times:
        for _ in range(calls):
            call()
        found = [seconds(torch, call, calls) for _ in range(5 if quick else 15)]
        return Times(min(found), statistics.median(found), len(found), calls)

    return measure


def in_turns(torch: Any, quick: bool, calls: int, named: dict[str, Callable[[], Any]]) -> dict[str, Times]:
    """As `timer` measures, each a burst in turn: all of them on a device as hot as the others', whose clock depends on
    its temperature and power."""
    found = {who: list[float]() for who in named}
    for _ in range(5 if quick else 15):
        for who, call in named.items():
            call()
            found[who].append(seconds(torch, call, calls))
    return {who: Times(min(t), statistics.median(t), len(t), calls) for who, t in found.items()}


def elementwise(torch: Any) -> list[tuple[str, int, Callable[[], Any], dict[str, Callable[[], Any]]]]:
    """(name, bytes, ours, peers' calls)."""
    ta, tb = (torch.rand(SIZE, device="cuda") for _ in range(2))
    tc = torch.empty_like(ta)
    a, b, c = (pa.from_dlpack(t) for t in (ta, tb, tc))
    m, n, o = (v.reshape(SIDE, SIDE) for v in (a, b, c))
    tm, tn, to = (v.view(SIDE, SIDE) for v in (ta, tb, tc))
    once = SIZE * 4
    cases = [
        ("add", 3 * once, lambda: pa.add(a, b, out=c), lambda: torch.add(ta, tb, out=tc)),
        (
            "sliced add",
            3 * once,
            lambda: pa.add(a[1:-1], b[:-2], out=c[:-2]),
            lambda: torch.add(ta[1:-1], tb[:-2], out=tc[:-2]),
        ),
        ("one kernel", 3 * once, lambda: wave(a, b, c), lambda: ta * tb + ta.sin() * (-tb * tb).exp()),
        ("half scaled", once, lambda: scale(a[: SIZE // 2], 1.5), lambda: ta[: SIZE // 2].mul_(1.5)),
        ("a.T copied", 2 * once, lambda: o.__setitem__(..., m.T), lambda: to.copy_(tm.T)),
        ("a.T + b", 3 * once, lambda: pa.add(m.T, n, out=o), lambda: torch.add(tm.T, tn, out=to)),
        (
            "i // w, i % w",
            2 * once,
            lambda: flatten(c[: SIZE - SIDE], n[:, 1:]),
            lambda: tc[: SIZE - SIDE].view(SIDE, SIDE - 1).copy_(tn[:, 1:]),
        ),
        ("sum", once, lambda: pa.sum(b), lambda: tb.sum()),
        ("sum axis 0", once, lambda: pa.sum(n, axis=0), lambda: tn.sum(0)),
        ("sum axis 1", once, lambda: pa.sum(n, axis=1), lambda: tn.sum(1)),
    ]
    rows = [(name, size, ours, {"torch": theirs}) for name, size, ours, theirs in cases]
    cupy = peers.peer("cupy")
    if cupy is not None:
        ca, cb, cc = (cupy.from_dlpack(t) for t in (ta, tb, tc))
        rows[0][3]["cupy"] = lambda: cupy.add(ca, cb, out=cc)
        rows[7][3]["cupy"] = lambda: cb.sum()
    rows.insert(0, ("copy", 2 * once, lambda: tc.copy_(ta), {"torch": lambda: tc.copy_(ta)}))
    return rows


def bandwidths(torch: Any, measure: Callable[[Callable[[], Any]], Times]) -> list[Row]:
    """Prints GB/s, ratios to the copy and to torch, and debug mode's to release."""
    rows, lines = list[Row](), [["float32, 2^28", "GB/s", "of copy", "torch", "cupy", "of torch", "debug"]]
    copy = 0.0
    for name, size, ours, others in elementwise(torch):
        times: dict[str, Times | None] = {"pyarray": measure(ours)}
        times |= {peer: measure(call) for peer, call in others.items()}
        speed = {who: size / t.median / 1e9 for who, t in times.items() if t is not None}
        if name == "copy":
            copy = speed["torch"]
            lines.append([name, "", "", f"{copy:.0f}", "", "", ""])
            continue
        with pa.debug():
            checked = measure(ours)
        debug = times["pyarray"].median / checked.median
        of_copy, of_torch = speed["pyarray"] / copy, speed["pyarray"] / speed["torch"]
        low = of_copy < OF_COPY.get(name, 0) or of_torch < OF_TORCH.get(name, 0)
        line = [
            name,
            f"{speed['pyarray']:.0f}",
            f"{of_copy:.3f}{' <' if low else '  '}",
            f"{speed['torch']:.0f}",
        ]
        line += [f"{speed['cupy']:.0f}" if "cupy" in speed else "-", f"{of_torch:.2f}"]
        lines.append([*line, f"{debug:.2f}{' <' if debug < DEBUG else '  '}"])
        facts = {"of_copy": of_copy, "of_torch": of_torch, "debug": debug}
        target = OF_TORCH.get(name)
        rows.append(Row("2^28 elements of float32", name, times, target, None, SIZE, ("torch",), facts))
    print(aligned(lines) + "\n", flush=True)
    return rows


def products(torch: Any, measure: Callable[[Callable[[], Any]], Times], quick: bool) -> list[Row]:
    """Prints TFLOP/s of matrix products, and the ratio to torch's library. tf32 is float32 with that precision, results
    of int8 are int32 and of float8 bfloat16, summed in float32, with b along the depth as cuBLASLt takes it."""
    rows, lines = list[Row](), [["matrix product", "TFLOP/s", "torch", "ratio"]]
    for dtype, (m, k, n) in PRODUCTS[:2] if quick else PRODUCTS:
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        own, other = (measure(call) for call in _product(torch, dtype, (m, k), (k, n)))
        torch.backends.cuda.matmul.allow_tf32 = False
        work, name = 2.0 * m * k * n, f"{dtype} {m}x{k}x{n}"
        rates = [f"{work / t.median / 1e12:.1f}" for t in (own, other)]
        lines.append([name, *rates, f"{other.median / own.median:.3f}"])
        rows.append(Row("matrix products", name, {"pyarray": own, "torch": other}, None, work))
    print(aligned(lines) + "\n", flush=True)
    return rows


def _product(
    torch: Any, dtype: str, left: tuple[int, int], right: tuple[int, int]
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Our call and torch's."""
    if dtype == "int8":
        x, y = (torch.randint(-128, 128, s, device="cuda", dtype=torch.int8) for s in (left, right))
        a, b = (pa.from_dlpack(t) for t in (x, y))
        return lambda: pa.gemm(a, b, dtype="int32"), lambda: torch._int_mm(x, y)
    if dtype == "float8_e4m3fn":
        x, y = (torch.randn(s, device="cuda").to(torch.float8_e4m3fn) for s in (left, right[::-1]))
        a, b, one = pa.from_dlpack(x), pa.from_dlpack(y).T, torch.ones((), device="cuda")
        return (
            lambda: pa.gemm(a, b, dtype="bfloat16"),
            lambda: torch._scaled_mm(x, y.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=False),
        )
    kind = torch.float32 if dtype == "tf32" else getattr(torch, dtype)
    x, y = (torch.randn(s, device="cuda").to(kind) for s in (left, right))
    a, b = (pa.from_dlpack(t) for t in (x, y))
    precision = "tf32" if dtype == "tf32" else None
    return lambda: pa.matmul(a, b, precision=precision), lambda: torch.mm(x, y)


def epilogues(torch: Any, quick: bool) -> list[Row]:
    """Prints microseconds of `activation(a @ b + bias)` of bfloat16, next to `torch.compile` of the same and to our
    product alone, in turns."""
    rows, lines = list[Row](), [["a @ b + bias", "pyarray", "product alone", "torch", "torch.compile", "of compiled"]]
    functions = torch.nn.functional
    for size in (4096,) if quick else (2048, 4096, 8192):
        x, y = (torch.randn(size, size, device="cuda").to(torch.bfloat16) for _ in "xy")
        bias = torch.randn(size, device="cuda").to(torch.bfloat16)
        a, b, e = (pa.from_dlpack(t) for t in (x, y, bias))
        for name in ("relu", "gelu", "silu"):

            def theirs(x=x, y=y, bias=bias, name=name):
                return getattr(functions, name)(torch.addmm(bias, x, y))

            torch.compiler.reset()
            calls = {
                "pyarray": lambda a=a, b=b, e=e, name=name: pa.gemm(a, b, bias=e, activation=name),
                "product alone": lambda a=a, b=b: pa.matmul(a, b),
                "torch": theirs,
                "torch.compile": torch.compile(theirs, dynamic=False),
            }
            for call in calls.values():
                call()
            times = in_turns(torch, quick, 5, calls)
            spent = [f"{t.median * 1e6:.0f}" for t in times.values()]
            case, ratio = f"{name} {size}^3", times["torch.compile"].median / times["pyarray"].median
            lines.append([case, *spent, f"{ratio:.2f}"])
            peers_times = {who: times[who] for who in ("pyarray", "torch", "torch.compile")}
            rows.append(
                Row("products with an epilogue", case, peers_times, 1.05, 2.0 * size**3, None, ("torch.compile",))
            )
    print(aligned(lines) + "\n", flush=True)
    return rows


def attentions(torch: Any, measure: Callable[[Callable[[], Any]], Times], quick: bool) -> list[Row]:
    """Prints TFLOP/s of attention and of its gradients, and the ratio to the fastest of torch's backends. A causal mask
    leaves half of the operations; gradients are five products, attention is two."""
    kinds = torch.nn.attention.SDPBackend
    backends = {"flash": kinds.FLASH_ATTENTION, "cudnn": kinds.CUDNN_ATTENTION, "efficient": kinds.EFFICIENT_ATTENTION}
    rows, lines = list[Row](), [["attention, bfloat16", "TFLOP/s", *backends, "ratio"]]
    sizes = ((64, 1024), (128, 4096)) if quick else tuple((head, n) for head in (64, 128) for n in (1024, 4096, 16384))
    for head, length in sizes:
        for causal in (False, True):
            shape = (max(16384 // length, 1), 2048 // head, length, head)
            tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
            grad = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
            work = 4.0 * shape[0] * shape[1] * length * length * head / (2 if causal else 1)
            forward, backward = _torch_attention(torch, measure, backends, tensors, grad, causal)
            q, k, v, g = (pa.from_dlpack(x.detach()) for x in (*tensors, grad))
            out, sums = pa.nn.attention(q, k, v, causal=causal, return_logsumexp=True)
            own = measure(lambda q=q, k=k, v=v, c=causal: pa.nn.attention(q, k, v, causal=c))
            operands = (g, q, k, v, out, sums)
            own_backward = measure(lambda x=operands, c=causal: pa.nn.attention_backward(*x, causal=c))
            name = f"head {head}, length {length}{', causal' if causal else ''}"
            for case, theirs, ours, count in (
                (name, forward, own, work), (f"{name}: gradients", backward, own_backward, 2.5 * work)
            ):  # fmt: skip
                best = min(t.median for t in theirs.values())
                speeds = [f"{count / t.median / 1e12:.0f}" for t in (ours, *theirs.values())]
                lines.append([case, *speeds, *["-"] * (len(backends) - len(theirs)), f"{best / ours.median:.3f}"])
                rows.append(Row("attention", case, {"pyarray": ours, **theirs}, None, count))
    print(aligned(lines) + "\n", flush=True)
    return rows


def _torch_attention(
    torch: Any, measure: Any, backends: dict[str, Any], tensors: list[Any], grad: Any, causal: bool
) -> tuple[dict[str, Times], dict[str, Times]]:
    """Times of the backends that this torch has, forward and backward."""
    forward, backward = dict[str, Times](), dict[str, Times]()
    function = torch.nn.functional.scaled_dot_product_attention
    for name, backend in backends.items():
        with torch.nn.attention.sdpa_kernel(backend):
            try:
                out = function(*tensors, is_causal=causal)
            except RuntimeError:  # it isn't built in, or not for this device
                continue
            with torch.no_grad():
                forward[name] = measure(lambda: function(*tensors, is_causal=causal))
            backward[name] = measure(lambda out=out: torch.autograd.grad(out, tensors, grad, retain_graph=True))
    return forward, backward


def vectors(torch: Any, measure: Callable[[Callable[[], Any]], Times], quick: bool) -> list[Row]:
    """Prints GB/s of the matrix in products with a row and with a column, and the ratios to torch and to a copy of the
    matrix, of which both the bytes read and those written count."""
    rows, lines = list[Row](), [["8192 x 8192", "GB/s", "torch", "copy", "of torch", "of copy"]]
    for dtype in ("float32",) if quick else ("float32", "float64", "bfloat16", "float16"):
        x, v = (torch.randn(s, device="cuda").to(getattr(torch, dtype)) for s in ((8192, 8192), (1, 8192)))
        w = v.T.contiguous()
        a, r, c = (pa.from_dlpack(t) for t in (x, v, w))
        target = torch.empty_like(x)
        copy = measure(lambda x=x, target=target: target.copy_(x)).median / 2
        cases: tuple[tuple[str, Callable[[], Any], Callable[[], Any]], ...] = (
            ("row times matrix", lambda a=a, r=r: r @ a, lambda x=x, v=v: v @ x),
            ("matrix times column", lambda a=a, c=c: a @ c, lambda x=x, w=w: x @ w),
            ("row times a.T", lambda a=a, r=r: r @ a.T, lambda x=x, v=v: v @ x.T),
        )
        for case, ours, theirs in cases:
            times: dict[str, Times | None] = {
                "pyarray": (own := measure(ours)),
                "torch": (other := measure(theirs)),
            }
            rates = [f"{x.nbytes / t / 1e9:.0f}" for t in (own.median, other.median, copy)]
            ratios = f"{other.median / own.median:.3f}", f"{copy / own.median:.3f}"
            lines.append([f"{dtype} {case}", *rates, *ratios])
            facts = {"of_copy": copy / own.median}
            group = "a row or a column times a matrix"
            rows.append(Row(group, f"{dtype} {case}", times, None, 2.0 * 8192**2, facts=facts))
    print(aligned(lines) + "\n", flush=True)
    return rows


def along_rows(torch: Any, measure: Callable[[Callable[[], Any]], Times], quick: bool) -> list[Row]:
    """Prints microseconds of functions of rows of 2^26 elements, next to a copy of as many."""
    found, names = list[Row](), ["pyarray", "special", "torch", "torch.compile"]
    lines = [["2^26 elements in rows", "copy", *names, "of copy", "of compiled"]]
    for dtype in ("float32",) if quick else ("float32", "bfloat16"):
        for columns in (8192,) if quick else (4096, 8192, 16384):
            like = torch.rand(1 << 26, device="cuda").to(getattr(torch, dtype))
            copy, target = None, torch.empty_like(like)
            copy = measure(lambda like=like, target=target: target.copy_(like))
            for name, ours, own, theirs, args in rows.cases(torch, ((1 << 26) // columns, columns), "cuda", dtype):
                torch.compiler.reset()
                compiled = torch.compile(theirs, dynamic=False)
                calls = {"pyarray": ours, "special": own, "torch": theirs, "torch.compile": compiled}
                times: dict[str, Times | None] = {
                    who: None
                    if call is None
                    else measure(call if who in names[:2] else lambda call=call, a=args: call(*a))
                    for who, call in calls.items()
                }
                own_time = times["pyarray"].median
                spent = ["-" if t is None else f"{t.median * 1e6:.0f}" for t in (copy, *times.values())]
                ratios = copy.median / own_time, times["torch.compile"].median / own_time
                lines.append([f"{dtype} {name} {columns}", *spent, *(f"{r:.2f}" for r in ratios)])
                facts = {"of_copy": ratios[0]}
                case = f"{name} {dtype} {columns}"
                found.append(
                    Row("functions of rows", case, times, 1.0, None, 1 << 26, ("torch", "torch.compile"), facts)
                )
    print(aligned(lines) + "\n", flush=True)
    return found


def further(torch: Any, measure: Callable[[Callable[[], Any]], Times]) -> list[Row]:
    """Prints milliseconds of random numbers and of distinct elements, and the ratio to torch."""
    rng, numbers = pa.random.default_rng(1), torch.rand(1 << 24, device="cuda")
    drawn, count = pa.from_dlpack(numbers), 1 << 26
    cases: tuple[tuple[str, Callable[[], Any], Callable[[], Any]], ...] = (
        (
            "2^26 normal variates",
            lambda: rng.standard_normal(count, "float32", device=drawn.device),
            lambda: torch.randn(count, device="cuda"),
        ),
        (
            "2^26 uniform variates",
            lambda: rng.random(count, "float32", device=drawn.device),
            lambda: torch.rand(count, device="cuda"),
        ),
        (
            "2^26 normal variates, float64",
            lambda: rng.standard_normal(count, device=drawn.device),
            lambda: torch.randn(count, device="cuda", dtype=torch.float64),
        ),
        (
            "2^26 uniform variates, float64",
            lambda: rng.random(count, device=drawn.device),
            lambda: torch.rand(count, device="cuda", dtype=torch.float64),
        ),
        ("2^24 unique_values", lambda: pa.unique_values(drawn), lambda: torch.unique(numbers)),
        ("2^24 sort", lambda: pa.sort(drawn), lambda: torch.sort(numbers)),
    )
    rows, lines = list[Row](), [["float32 but where named", "ms", "torch", "ratio"]]
    for case, ours, theirs in cases:
        times: dict[str, Times | None] = {
            "pyarray": (own := measure(ours)),
            "torch": (other := measure(theirs)),
        }
        spent = [f"{t.median * 1e3:.3f}" for t in (own, other)]
        lines.append([case, *spent, f"{other.median / own.median:.3f}"])
        rows.append(Row("other functions", case, times))
    print(aligned(lines) + "\n", flush=True)
    return rows


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes; no rows without a GPU that torch and pyarray both see."""
    torch = peers.peer("torch")
    if torch is None or not torch.cuda.is_available():
        print("(no GPU that torch sees: nothing is measured)\n")
        yield Figure("device", "none: nothing was measured")
        return
    measure = timer(torch, quick)
    device = torch.cuda.get_device_name()
    print(f"{device}; < is below the target\n")
    yield Figure("device", device)
    for row in bandwidths(torch, measure):
        yield row
        for fact, bound in (("of_copy", OF_COPY.get(row.case)), ("debug", DEBUG)):
            name = {"of_copy": "bandwidth over a copy's", "debug": "debug mode's speed over release's"}[fact]
            yield Figure(f"{row.case}: {name}", row.facts[fact], at_least=bound)
    torch.cuda.empty_cache()
    yield from along_rows(torch, timer(torch, quick, calls=5), quick)
    yield from products(torch, measure, quick)
    yield from epilogues(torch, quick)
    yield from attentions(torch, timer(torch, quick, calls=5), quick)
    yield from vectors(torch, timer(torch, quick, calls=20), quick)
    yield from further(torch, timer(torch, quick, calls=5))


if __name__ == "__main__":
    from .part import alone

    alone("gpu")
