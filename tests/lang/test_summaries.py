"""Summaries of statements and children of nodes against plain walks over the fields of a tree."""

from dataclasses import fields, is_dataclass

import pytest
from test_golden import NUMBER, STRIDED, VECTOR, centre, masked_sum, scale, total, transposed

from pyarray.dtypes import bool_, float32
from pyarray.lang import ir
from pyarray.lang.bounds_checks import insert_checks
from pyarray.lang.pipeline import analyse
from pyarray.lang.summaries import rewrite_where, summary
from pyarray.lang.traversal import children

MATRIX, MASK = ir.ArrayType(float32, 2, False), ir.ArrayType(bool_, 2, False)
KERNELS = [
    (scale, {"v": VECTOR, "factor": NUMBER}),
    (transposed, {"a": STRIDED, "b": STRIDED, "n": ir.INDEX}),
    (total, {"v": VECTOR, "out": VECTOR}),
    (centre, {"out": MATRIX, "x": MATRIX}),
    (masked_sum, {"out": VECTOR, "x": MATRIX, "mask": MASK}),
]


def below(node):
    """The sub-nodes of a node, by looking at each field."""
    values = [getattr(node, field.name) for field in fields(node)]
    flat = [x for value in values for x in (value if isinstance(value, tuple) else (value,))]
    return [x for x in flat if is_dataclass(x) and isinstance(x, (ir.Node, ir.Range))]


def everything(node):
    return [node, *(n for x in below(node) for n in everything(x))]


@pytest.fixture(params=KERNELS, ids=lambda case: case[0].__name__)
def statements(request):
    kernel, params = request.param
    tree, _ = insert_checks(analyse(kernel.source_text, list(params.items())).tree)
    return [s for f in (*tree.functions, tree.kernel) for s in f.body]


def test_children_are_the_nodes_in_the_fields(statements):
    for statement in statements:
        for node in everything(statement):
            assert list(map(id, children(node))) == list(map(id, below(node)))
        assert list(map(id, ir.walk(statement))) == list(map(id, everything(statement)))


def test_a_summary_has_what_stands_in_a_statement(statements):
    for statement in statements:
        nodes = everything(statement)
        found = summary(statement)
        assert found.kinds == {type(n) for n in nodes}
        assert found.names == {n.name for n in nodes if isinstance(n, ir.Local)}
        assert found.assigned == {n.name for n in nodes if isinstance(n, (ir.Assign, ir.Let, ir.SetElement))}
        assert found.called == {n.function for n in nodes if isinstance(n, ir.Invoke)}
        assert found.operators == {n.op for n in nodes if isinstance(n, ir.Binary)}
        assert found.sites == {n.site for n in nodes if getattr(n, "site", None) is not None}
        assert summary(statement) is found


def test_statements_are_rewritten_where_the_summary_says_so(statements):
    seen = []
    for statement in statements:
        assert rewrite_where(statement, lambda n: seen.append(type(n)) or n, lambda s: False) is statement
        assert not seen
        assert rewrite_where(statement, lambda n: seen.append(type(n)) or n, lambda s: True) is statement
        assert len(seen) == len(everything(statement))
        seen.clear()
