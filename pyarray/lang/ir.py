"""The typed tree, the intermediate representation of kernels: its grammar, and the one traversal of it.

Every node is frozen and has `loc`, its place in the user's source. Expressions have `type`. `infer` builds the
tree, `verify` states its rules, `bounds_checks` numbers the accesses that debug mode tests, `emit` writes it
as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dtypes import DType
from .loc import Loc as Loc
from .traversal import children as children
from .traversal import rewrite as rewrite
from .traversal import walk as walk
from .types import BOOL as BOOL
from .types import INDEX as INDEX
from .types import TYPES as TYPES
from .types import ArrayType as ArrayType
from .types import LocalArrayType as LocalArrayType
from .types import ScalarType as ScalarType
from .types import Static as Static
from .types import TileType as TileType
from .types import TupleType as TupleType
from .types import Type as Type
from .types import static_key as static_key


class Summarised:
    """Has room for what `summaries` finds of a node."""

    __slots__ = ("found",)
    found: Any


@dataclass(frozen=True, slots=True)
class Node(Summarised):
    """A part of a function, with its place in the source."""

    loc: Loc


# ---- expressions


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """Has a value. `type` is a `ScalarType`; of views an `ArrayType`, of `Build` and `Fill` a `LocalArrayType`, of
    `Pack` a `TupleType`, of `Local`, `Invoke`, `Item`, `Let` and `Select` any of these."""

    type: Any


@dataclass(frozen=True, slots=True)
class Const(Expression):
    value: Any


@dataclass(frozen=True, slots=True)
class Local(Expression):
    """A parameter or variable of the function. Names that begin with a dot are made here; users can't write
    them."""

    name: str


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """op: neg invert not. The operand has the node's type."""

    op: str
    a: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """op: add sub mul div floordiv mod pow shl shr and or xor. Both operands have the node's type."""

    op: str
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    """op: eq ne lt le gt ge. Both operands have one type, or one is int64 and one uint64."""

    op: str
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Logic(Expression):
    """op: and or; short-circuit. Operands are bools."""

    op: str
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Select(Expression):
    """`a if condition else b`: only one of them is evaluated."""

    condition: Expr
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    a: Expr


@dataclass(frozen=True, slots=True)
class Builtin(Expression):
    """A row of `builtins.FUNCTIONS`, with its arguments cast to `domain`."""

    name: str
    domain: DType
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Load(Expression):
    """`site` numbers the check of axis 0, axis k is `site + k`; None: not checked."""

    array: Expr
    index: tuple[Expr, ...]
    site: int | None = None


@dataclass(frozen=True, slots=True)
class Atomic(Expression):
    """`op` on one element; the value is what stood there before. Of cas, `value` is what is expected there,
    and `desired` what takes its place."""

    op: str
    array: Expr
    index: tuple[Expr, ...]
    value: Expr
    site: int | None = None
    desired: Expr | None = None


@dataclass(frozen=True, slots=True)
class Size(Expression):
    array: Expr
    axis: int


@dataclass(frozen=True, slots=True)
class Stride(Expression):
    """In bytes."""

    array: Expr
    axis: int


@dataclass(frozen=True, slots=True)
class Range:
    """start, stop and step of a slice; None where the source says nothing."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None

    @property
    def present(self) -> str:
        """A letter for each bound that it has, of "abs"."""
        return "".join(c for c, x in zip("abs", (self.start, self.stop, self.step), strict=True) if x is not None)


WHOLE = Range(None, None, None)


@dataclass(frozen=True, slots=True)
class Slice(Expression):
    """Basic indexing that leaves axes: per axis an expression (dropped) or a `Range` (kept, clamped as Python
    does). `transposed`: the kept axes in reverse order."""

    array: Expr
    parts: tuple[Expr | Range, ...]
    site: int | None = None
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class SubView(Expression):
    """Strict sub-range of a 1-D array: outside the parent is a failure in debug mode."""

    array: Expr
    offset: Expr
    size: Expr
    site: int | None = None


@dataclass(frozen=True, slots=True)
class Reshape(Expression):
    """A view of the elements in C order, with another shape. A size that is the constant -1 is what the
    others leave. Where the shape hasn't as many elements all sizes are 0, which debug mode reports."""

    array: Expr
    shape: tuple[Expr, ...]
    site: int | None = None

    @property
    def missing(self) -> int | None:
        """The axis whose size is found."""
        axes = (k for k, n in enumerate(self.shape) if isinstance(n, Const) and n.value == -1)
        return next(axes, None)


@dataclass(frozen=True, slots=True)
class Invoke(Expression):
    """Call of a `Function` of this program; its value is what the function returns."""

    function: str
    args: tuple[Expr, ...]
    site: int | None = None


@dataclass(frozen=True, slots=True)
class Convert(Expression):
    """A conversion that is no `Cast`. `how`: "saturate", of a uint64 to int64, 2**63 - 1 for what is more;
    "bitcast", the same bits as another type of that size; "reshape", a local array in another shape."""

    a: Expr
    how: str


@dataclass(frozen=True, slots=True)
class Pack(Expression):
    """Several values, to be returned."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Item(Expression):
    """One of the values that a call returned."""

    pack: Expr
    number: int


@dataclass(frozen=True, slots=True)
class Let(Expression):
    """`value` is assigned to the variable `name`, then `body` is evaluated: that is the node's value."""

    name: str
    value: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class Build(Expression):
    """A local array of these elements, in C order."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Fill(Expression):
    """A local array whose elements all are `value`."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Element(Expression):
    """An element of a local array. Constant indices are in range; `site` as of `Load`."""

    array: Expr
    index: tuple[Expr, ...]
    site: int | None = None


@dataclass(frozen=True, slots=True)
class Shared(Expression):
    """`value`, a copy. In Python it would share the memory of the variables `names`; `sharing` refuses what would
    show that, and removes the node."""

    value: Expr
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Print(Expression):
    """A line of text with numbers in it, of type None. `args` are of 64 bits or complex; `text` is a template of
    `messages`."""

    args: tuple[Expr, ...]
    text: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Assert(Expression):
    """Fails where the condition doesn't hold, with a text as that of `Print`; of type None. Only checked code has
    any."""

    condition: Expr
    args: tuple[Expr, ...]
    text: tuple[Any, ...]
    site: int | None = None


@dataclass(frozen=True, slots=True)
class NoAlias(Expression):
    """Whether no array that the kernel writes shares memory with another one; false where nobody has looked."""


Expr = (
    Let | Const | Local | Unary | Binary | Compare | Logic | Select | Cast | Builtin | Load | Atomic | Size
    | Stride | Slice | SubView | Reshape | Invoke | Convert | Pack | Item | Build | Fill | Element | Shared
    | Print | Assert | NoAlias
)  # fmt: skip


# ---- statements


@dataclass(frozen=True, slots=True)
class Assign(Node):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Store(Node):
    """`marks` are pairs of parameters (`write_mask`): the lowest address of an array, and the mask of what was
    written in it."""

    array: Expr
    index: tuple[Expr, ...]
    value: Expr
    site: int | None = None
    marks: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class SetElement(Node):
    """Assigns an element of a variable that is a local array of this shape; `index` and `site` as of `Element`."""

    name: str
    shape: tuple[int, ...]
    index: tuple[Expr, ...]
    value: Expr
    site: int | None = None


@dataclass(frozen=True, slots=True)
class For(Node):
    """`variables` run over the product of `ranges`, the last one fastest. The body never assigns them, and
    ranges are evaluated once, before the first iteration.

    `loop` is the number of a parallel (top-level) loop, None for an inner one. `reductions` (variable, op) of
    a parallel loop are lowered (`reduction_lowering`), those of an inner one may be accumulated in any order, and
    the iterations of an `unordered` one may run in any order, or at the same time. `site` is that of a step that may
    be 0, or of sizes that may have too large a product. `capacity`: it runs over an axis of a tile, which has so many
    elements at most; such loops stand directly in each other, and a GPU's threads share their iterations.
    """

    variables: tuple[str, ...]
    ranges: tuple[Range, ...]
    body: tuple[Stmt, ...]
    loop: int | None = None
    reductions: tuple[tuple[str, str], ...] = ()
    site: int | None = None
    unordered: bool = False
    capacity: int = 0


@dataclass(frozen=True, slots=True)
class BeginIteration(Node):
    """The following statements are iteration `number` of a parallel loop, for failure records; in checked code
    only."""

    number: Expr


@dataclass(frozen=True, slots=True)
class While(Node):
    """`site`: debug mode counts its turns."""

    condition: Expr
    body: tuple[Stmt, ...]
    site: int | None = None


@dataclass(frozen=True, slots=True)
class If(Node):
    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Break(Node):
    """Leaves the innermost loop."""


@dataclass(frozen=True, slots=True)
class Continue(Node):
    """Goes on with its next iteration."""


@dataclass(frozen=True, slots=True)
class Return(Node):
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Evaluate(Node):
    """An expression for its effect: an atomic or a call."""

    value: Expr


Stmt = Assign | Store | SetElement | BeginIteration | For | While | If | Break | Continue | Return | Evaluate


@dataclass(frozen=True, slots=True)
class Function:
    """`symbol` is unique in the program, `name` is the user's. `variables` excludes the parameters."""

    name: str
    symbol: str
    loc: Loc
    params: tuple[tuple[str, Any], ...]
    variables: tuple[tuple[str, Any], ...]
    body: tuple[Stmt, ...]
    result: Any


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole program: the kernel, and the functions it calls, callees first."""

    kernel: Function
    functions: tuple[Function, ...]
