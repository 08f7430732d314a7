"""A random graph: inputs, and steps that each apply one operator to what is there."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Size = tuple[Any, ...]  # the factors of a size: names of symbols and whole numbers, in order
Shape = tuple[Size, ...]
Sizes = dict[str, Any]  # a value, or torch.SymInt, by the name of each symbol

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16)
DTYPES = (*FLOATS, *INTS, torch.bool)
SYMBOLS = ("a", "b", "c", "d")


def size(key: Size, sizes: Sizes) -> Any:
    """The value of a size."""
    return math.prod(sizes[x] if isinstance(x, str) else x for x in key)


def times(*keys: Size) -> Size:
    """The product of sizes."""
    return tuple(sorted((x for key in keys for x in key), key=str))


@dataclass
class Value:
    """A tensor of the graph. `exact`: rounded as eager torch rounds it, bit by bit; what only nearly agrees
    never reaches an operator that isn't continuous."""

    shape: Shape
    dtype: torch.dtype
    exact: bool
    number: int = 0

    @property
    def rank(self) -> int:
        return len(self.shape)


@dataclass(frozen=True)
class Input:
    """An input and the layout that it comes in. `of`: the number of the input whose memory it shares."""

    shape: Shape
    dtype: torch.dtype
    layout: str
    order: tuple[int, ...]
    seed: int
    special: bool
    of: int | None = None

    def make(self, sizes: Sizes, device: str, before: list[torch.Tensor]) -> torch.Tensor:
        """The tensor for these sizes."""
        if self.of is not None:
            return before[self.of].detach()
        shape = [size(n, sizes) for n in self.shape]
        order = list(self.order)
        inner = [shape[k] for k in order]
        if self.layout == "stepped":
            base = self.filled([n * 2 + 1 for n in inner], device)
            x = base[tuple(slice(1, 1 + 2 * n, 2) for n in inner)]
        elif self.layout == "offset":
            base = self.filled([n + 3 for n in inner], device)
            x = base[tuple(slice(2, 2 + n) for n in inner)]
        elif self.layout == "expanded" and inner:
            x = self.filled([1, *inner[1:]], device).expand(inner)
        elif self.layout == "odd":  # strides of axes with one element mean nothing
            x = self.filled(inner, device)
            strides = [s if n != 1 else 7 for n, s in zip(inner, x.stride(), strict=True)]
            x = x.as_strided(inner, strides)
        else:
            x = self.filled(inner, device)
        return x.permute([order.index(k) for k in range(len(order))]) if order else x

    def filled(self, shape: list[int], device: str) -> torch.Tensor:
        """A contiguous tensor of drawn values."""
        made = torch.Generator().manual_seed(self.seed)
        if self.dtype == torch.bool:
            x = torch.randint(0, 2, shape, generator=made).bool()
        elif not self.dtype.is_floating_point:
            low = 0 if self.dtype == torch.uint8 else -5
            x = torch.randint(low, 10, shape, generator=made).to(self.dtype)
            if self.special:
                which, ends = torch.randint(0, 24, shape, generator=made), torch.iinfo(self.dtype)
                x = x.masked_fill(which == 0, ends.min).masked_fill(which == 1, ends.max)
        else:
            x = (torch.randint(-16, 17, shape, generator=made) / 4).to(self.dtype)
            if self.special:
                which = torch.randint(0, 24, shape, generator=made)
                for k, value in enumerate((math.nan, math.inf, -math.inf, 1e4)):
                    x = x.masked_fill(which == k, value)
        return x.to(device)


Apply = Callable[..., Any]


@dataclass
class Step:
    """One operator: `apply(sizes, *operands)` gives a tensor, or a list of them. `noisy`: its result is
    rounded differently here and there; `along` are axes of the first operand that its sums run along.
    `named` are symbols for axes of the result: axis by name."""

    text: str
    apply: Apply
    operands: list[int]
    noisy: bool
    named: list[list[tuple[str, int]]] = field(default_factory=list)
    along: tuple[int, ...] = ()


@dataclass
class Graph:
    """`inputs`, `steps` and `outputs`, the numbers of the values that are returned."""

    inputs: list[Input]
    steps: list[Step]
    outputs: list[int]
    symbols: dict[str, tuple[int, int]]  # the input and axis that have each symbol's size
    changed: bool = False  # whether inputs are written

    def made(self, sizes: Sizes, device: str) -> list[torch.Tensor]:
        """The inputs for these sizes, in memory of their own."""
        inputs: list[torch.Tensor] = []
        for x in self.inputs:
            inputs.append(x.make(sizes, device, inputs))
        return inputs

    def run(
        self, tensors: list[Any], noise: Callable[..., Any] | None = None, device: str = "cpu",
        turned: bool = False,
    ) -> list[Any]:  # fmt: skip
        """The outputs; `noise(result, step, operands)` changes each step's result. `turned`: reductions
        begin at the other end."""
        sizes: Sizes = {name: tensors[k].shape[axis] for name, (k, axis) in self.symbols.items()}
        sizes |= {"device": device, "turned": turned}
        values = list(tensors)
        for step in self.steps:
            made = step.apply(sizes, *(values[k] for k in step.operands))
            listed = [made] if isinstance(made, torch.Tensor) else list(made)
            for x, names in zip(listed, step.named, strict=False):
                for name, axis in names:
                    sizes[name] = x.shape[axis]
            if noise is not None:
                listed = [noise(x, step, [values[k] for k in step.operands]) for x in listed]
            values += listed
        return [values[k] for k in self.outputs]

    def text(self) -> str:
        """The graph, a line for each input and step."""
        lines = [
            f"v{k} = {x.dtype} {['*'.join(map(str, n)) or '1' for n in x.shape]} {x.layout} {x.order}"
            f"{' special' if x.special else ''}{f' shares v{x.of}' if x.of is not None else ''}"
            for k, x in enumerate(self.inputs)
        ]
        lines += [f"{s.text}({', '.join(f'v{k}' for k in s.operands)})" for s in self.steps]
        return "\n  ".join([*lines, f"return {self.outputs}"])


class Drawing:
    """A graph while it is drawn. `tensors` are the values at the sizes that are traced."""

    def __init__(self, rng: random.Random, sizes: dict[str, int], device: str = "cpu"):
        self.rng, self.sizes, self.device = rng, dict(sizes), device
        self.env: Sizes = {**sizes, "device": device}
        self.values: list[Value] = []
        self.tensors: list[torch.Tensor] = []
        self.inputs: list[Input] = []
        self.steps: list[Step] = []
        self.symbols: dict[str, tuple[int, int]] = {}
        self.fresh = 0
        self.changed = False

    # ---- inputs

    def input(self) -> None:
        """One more input."""
        rng = self.rng
        shared = [k for k, v in enumerate(self.inputs) if v.of is None]
        if shared and rng.random() < 0.05:
            k = rng.choice(shared)
            old = self.inputs[k]
            made = Input(old.shape, old.dtype, old.layout, old.order, old.seed, old.special, k)
        else:
            rank = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 3, 4))
            # The cube of a large size doesn't fit a machine.
            distinct = rng.random() < 0.8 or max(self.sizes.values()) >= 100
            names = sorted(rng.sample(SYMBOLS, rank)) if distinct else rng.choices(SYMBOLS, k=rank)
            shape = tuple((n,) if rng.random() < 0.85 else () for n in names)
            order = list(range(rank))
            if rng.random() < 0.3:
                rng.shuffle(order)
            layout = rng.choice(("plain",) * 5 + ("stepped", "offset", "expanded", "odd"))
            dtype = self.dtype()
            special = rng.random() < 0.15
            made = Input(shape, dtype, layout, tuple(order), rng.randrange(1 << 30), special)
        self.inputs.append(made)
        self.tensors.append(made.make(self.env, self.device, self.tensors))
        self.values.append(Value(made.shape, made.dtype, True, len(self.values)))
        for axis, key in enumerate(made.shape):
            if len(key) == 1:
                self.symbols.setdefault(key[0], (len(self.inputs) - 1, axis))

    def dtype(self) -> torch.dtype:
        """Of an input."""
        rng = self.rng
        if rng.random() < 0.55:
            return rng.choice((torch.float32, torch.float32, torch.float64))
        return rng.choice(DTYPES)

    # ---- operands

    def pick(self, accept: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value, later ones more often."""
        accepted = [v for v in self.values if accept(v)]
        if not accepted:
            return None
        return accepted[-1 - min(int(self.rng.expovariate(0.35)), len(accepted) - 1)]

    def new(self) -> str:
        """The name of a size that is known when the graph runs."""
        self.fresh += 1
        return f"s{self.fresh}"

    def add(
        self, text: str, operands: list[Value], apply: Apply, shapes: list[tuple[Size | None, ...]],
        *, exact: bool = True, noisy: bool = False, along: tuple[int, ...] = (),
    ) -> bool:  # fmt: skip
        """A step with results of these shapes (None: a size of its own); False where torch refuses it."""
        tensors = [self.tensors[v.number] for v in operands]
        try:
            made = apply(self.env, *tensors)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            return False
        listed = [made] if isinstance(made, torch.Tensor) else list(made)
        if any(x.dtype not in DTYPES or x.numel() > 1 << 16 for x in listed):
            return False
        named: list[list[tuple[str, int]]] = []
        exact = exact and not noisy and all(v.exact for v in operands)
        for x, shape in zip(listed, shapes, strict=True):
            names = [(self.new(), axis) for axis, key in enumerate(shape) if key is None]
            by_axis = {axis: name for name, axis in names}
            keys = tuple(key if key is not None else (by_axis[axis],) for axis, key in enumerate(shape))
            self.env |= {name: x.shape[axis] for name, axis in names}
            assert tuple(x.shape) == tuple(size(n, self.env) for n in keys), (text, x.shape, keys)
            whole = exact or (not x.dtype.is_floating_point and all(v.exact for v in operands))
            self.values.append(Value(keys, x.dtype, whole, len(self.values)))
            self.tensors.append(x)
            named.append(names)
        self.steps.append(Step(text, apply, [v.number for v in operands], noisy, named, along))
        return True

    def broadcast(self, first: Value) -> Value | None:
        """A value whose shape broadcasts with that of `first`."""

        def fits(v: Value) -> bool:
            pairs = zip(reversed(v.shape), reversed(first.shape), strict=False)
            return all(m == n or m == () or n == () for m, n in pairs)

        return self.pick(fits)


def plain_sizes(d: Drawing) -> list[Size]:
    """Sizes that an input has."""
    return [(s,) for s in d.symbols] or [(2,)]


def broadcast_shape(*shapes: Shape) -> Shape:
    """What shapes broadcast to."""
    rank = max(map(len, shapes), default=0)
    padded = [((),) * (rank - len(s)) + s for s in shapes]
    return tuple(next((n for n in axis if n != ()), ()) for axis in zip(*padded, strict=True))


def finish(d: Drawing) -> Graph:
    """The graph, with drawn outputs."""
    rng = d.rng
    made = [v.number for v in d.values[len(d.inputs) :]]
    outputs = [made[-1]] if made else [0]
    for _ in range(rng.randrange(4)):
        outputs.append(rng.choice(made) if made and rng.random() < 0.9 else rng.randrange(len(d.inputs)))
    return Graph(d.inputs, d.steps, outputs, d.symbols, d.changed)
