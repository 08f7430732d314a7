"""GPUs: bandwidth of elementwise kernels, transposes and reductions next to a copy's; matrix products.

`python -m bench.gpu [--json PATH]`; nothing is measured where there is no GPU. Times are medians between
events of the device, on arrays that the libraries share. torch is needed, for events and as a peer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarray as pa

from . import gpu_products, gpu_reductions, peers, rows
from .gpu_timing import in_turns, timer
from .timing import Figure, Row, Times, aligned

ABOUT = """Time on the device, by its events: elementwise kernels, transposes and reductions next to PyTorch
and CuPy, matrix products and attention next to PyTorch's libraries, on arrays that the libraries share."""
SIZE, SIDE = 1 << 28, 1 << 14
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
BACKENDS = "flash", "cudnn", "efficient"  # of torch's attention
MASKS = "mask", "padding", "bias"


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


def attentions(torch: Any, quick: bool) -> list[Row]:
    """Prints TFLOP/s of attention and of its gradients, and the ratio to the fastest of torch's backends, in turns. A
    causal mask leaves half of the operations; gradients are five products, attention is two."""
    rows, lines = list[Row](), [["attention, bfloat16", "TFLOP/s", *BACKENDS, "ratio"]]
    sizes = ((64, 1024), (128, 4096)) if quick else tuple((head, n) for head in (64, 128) for n in (1024, 4096, 16384))
    kinds = [(*size, kind) for size in sizes for kind in ("", "causal", *(MASKS if size[1] == 4096 else ()))]
    for head, length, kind in kinds:
        shape = (max(16384 // length, 1), 2048 // head, length, head)
        tensors = [torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
        grad = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        mask = _attention_mask(torch, kind, shape)
        forward, backward = _torch_attention(torch, tensors, grad, mask, kind == "causal")
        q, k, v, g = (pa.from_dlpack(x.detach()) for x in (*tensors, grad))
        m, options = None if mask is None else pa.from_dlpack(mask), {"causal": kind == "causal"}
        out, sums = pa.nn.attention(q, k, v, m, return_logsumexp=True, **options)
        operands = (q, k, v, m), (g, q, k, v, out, sums, m)
        forward["pyarray"] = lambda x=operands[0], o=options: pa.nn.attention(*x, **o)
        backward["pyarray"] = lambda x=operands[1], o=options: pa.nn.attention_backward(*x, **o)
        work = 4.0 * shape[0] * shape[1] * length * length * head / (2 if kind == "causal" else 1)
        name = f"head {head}, length {length}{', ' * bool(kind)}{kind}"
        for case, calls, count in ((name, forward, work), (f"{name}: gradients", backward, 2.5 * work)):
            times = in_turns(torch, quick, 5, calls)
            speeds = [
                f"{count / times[who].median / 1e12:.0f}" if who in times else "-" for who in ("pyarray", *BACKENDS)
            ]
            best = min(t.median for who, t in times.items() if who != "pyarray")
            lines.append([case, *speeds, f"{best / times['pyarray'].median:.3f}"])
            rows.append(Row("attention", case, times, None, count))
    print(aligned(lines) + "\n", flush=True)
    return rows


def _attention_mask(torch: Any, kind: str, shape: tuple[int, ...]) -> Any:
    """Booleans for each batch, of which nine of ten are true, or the first keys; or numbers that are added for each
    head."""
    batch, heads, length, _ = shape
    if kind == "mask":
        return torch.rand((batch, 1, length, length), device="cuda") < 0.9
    if kind == "padding":
        lengths = torch.randint(length // 2, length, (batch, 1, 1, 1), device="cuda")
        return torch.arange(length, device="cuda") < lengths
    if kind == "bias":
        return torch.randn((1, heads, length, length), device="cuda", dtype=torch.bfloat16)
    return None


def _torch_attention(
    torch: Any, tensors: list[Any], grad: Any, mask: Any, causal: bool
) -> tuple[dict[str, Callable[[], Any]], dict[str, Callable[[], Any]]]:
    """Calls of the backends that this torch has, forward and backward."""
    forward, backward = dict[str, Callable[[], Any]](), dict[str, Callable[[], Any]]()
    function, detached = torch.nn.functional.scaled_dot_product_attention, [t.detach() for t in tensors]
    for name in BACKENDS:
        backend = getattr(torch.nn.attention.SDPBackend, f"{name.upper()}_ATTENTION")

        def attention(tensors=tensors, backend=backend, mask=mask):
            with torch.nn.attention.sdpa_kernel(backend):
                return function(*tensors, attn_mask=mask, is_causal=causal)

        try:
            out = attention()
        except RuntimeError:  # it isn't built in, or not for this device, or takes no mask
            continue
        forward[name] = lambda call=attention: call(detached)
        backward[name] = lambda out=out: torch.autograd.grad(out, tensors, grad, retain_graph=True)
    return forward, backward


def along_rows(torch: Any, measure: Callable[[Callable[[], Any]], Times], quick: bool) -> list[Row]:
    """Prints microseconds of functions of rows of 2^26 elements, next to a copy of as many."""
    found, names = list[Row](), ["pyarray", "special", "torch", "torch.compile"]
    lines = [["2^26 elements in rows", "copy", *names, "of copy", "of compiled"]]
    for dtype in ("float32",) if quick else ("float32", "bfloat16"):
        longest = (256 << 10) // getattr(torch, dtype).itemsize  # as of a language model's words
        for columns in (8192,) if quick else (4096, 8192, 16384, longest):
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


def short_rows(torch: Any, measure: Callable[[Callable[[], Any]], Times], quick: bool) -> list[Row]:
    """Prints microseconds of a softmax of short rows, most of which aren't whole vectors, next to a copy."""
    found, lines = (
        list[Row](),
        [["softmax of short rows", "copy", "pyarray", "special", "torch", "of copy", "of torch"]],
    )
    for dtype, count in (("float32", 1 << 25), ("bfloat16", 1 << 26)):
        like = torch.rand(count, device="cuda").to(getattr(torch, dtype))
        target = torch.empty_like(like)
        copy = measure(lambda like=like, target=target: target.copy_(like))
        for columns in (100,) if quick else (33, 100, 128, 250, 333, 501, 1001):
            x = like[: count // columns * columns].view(-1, columns)
            a = pa.from_dlpack(x)
            calls = {
                "pyarray": lambda a=a: rows.softmax(a),
                "special": lambda a=a: pa.special.softmax(a, axis=-1),
                "torch": lambda x=x: torch.softmax(x, -1),
            }
            times: dict[str, Times | None] = {who: measure(call) for who, call in calls.items()}
            own, theirs = times["pyarray"].median, times["torch"].median
            spent = [f"{t.median * 1e6:.0f}" for t in (copy, *times.values())]
            case = f"{dtype} {columns}"
            lines.append([case, *spent, f"{copy.median / own:.2f}", f"{theirs / own:.2f}"])
            found.append(Row("softmax of short rows", case, times, None, None, count, ("torch",)))
    print(aligned(lines) + "\n", flush=True)
    return found


def further(torch: Any, quick: bool) -> list[Row]:
    """Prints milliseconds of random numbers, sums, masks and distinct elements, and the ratio to torch, in turns."""
    rng, numbers = pa.random.default_rng(1), torch.rand(1 << 24, device="cuda")
    drawn, count = pa.from_dlpack(numbers), 1 << 26
    more = torch.rand(count, device="cuda")
    chosen = more > 0.5
    many, mask = (pa.from_dlpack(t) for t in (more, chosen))
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
        ("2^26 cumulative_sum", lambda: pa.cumulative_sum(many), lambda: torch.cumsum(more, 0)),
        ("2^26 elements by a mask", lambda: many[mask], lambda: more[chosen]),
        ("2^26 elements set by a mask", lambda: many.__setitem__(mask, 1.0), lambda: more.__setitem__(chosen, 1.0)),
        ("2^26 nonzero", lambda: pa.nonzero(mask), lambda: torch.nonzero(chosen)),
        ("2^24 sort", lambda: pa.sort(drawn), lambda: torch.sort(numbers)),
    )
    rows, lines = list[Row](), [["float32 but where named", "ms", "torch", "ratio"]]
    for case, ours, theirs in cases:
        times = in_turns(torch, quick, 5, {"pyarray": ours, "torch": theirs})
        spent = [f"{t.median * 1e3:.3f}" for t in times.values()]
        lines.append([case, *spent, f"{times['torch'].median / times['pyarray'].median:.3f}"])
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
    device = torch.cuda.get_device_name()
    print(f"{device}; < is below the target\n")
    yield Figure("device", device)
    for row in bandwidths(torch, timer(torch, quick, calls=5)):
        yield row
        for fact, bound in (("of_copy", OF_COPY.get(row.case)), ("debug", DEBUG)):
            name = {"of_copy": "bandwidth over a copy's", "debug": "debug mode's speed over release's"}[fact]
            yield Figure(f"{row.case}: {name}", row.facts[fact], at_least=bound)
    torch.cuda.empty_cache()
    yield from along_rows(torch, timer(torch, quick, calls=5), quick)
    yield from short_rows(torch, timer(torch, quick, calls=5), quick)
    yield from gpu_reductions.reductions(torch, quick)
    yield from gpu_products.products(torch, quick)
    yield from gpu_products.grouped(torch, quick)
    yield from gpu_products.epilogues(torch, quick)
    yield from gpu_products.vectors(torch, quick)
    yield from attentions(torch, quick)
    yield from further(torch, quick)


if __name__ == "__main__":
    from .part import alone

    alone("gpu")
