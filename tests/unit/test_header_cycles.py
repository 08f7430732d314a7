"""Headers of csrc/device include and name each other without a cycle: a part knows nothing of what it is part of."""

import re
from pathlib import Path

import pytest

DEVICE = Path(__file__).parents[2] / "csrc" / "device"


def references(texts):
    """For each header the others that its text includes or names."""
    return {
        name: sorted({n for n in re.findall(r"\bpa_\w+\.h\b", text) if n in texts} - {name})
        for name, text in texts.items()
    }


def cycle(graph):
    """The headers of a cycle in order, the first one again at the end; None where there is none."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return None
        path.append(name)
        found = next((c for c in map(visit, graph[name]) if c), None)
        path.pop()
        done.add(name)
        return found

    return next((c for c in map(visit, sorted(graph)) if c), None)


def test_headers_have_no_cycle():
    texts = {path.name: path.read_text() for path in DEVICE.glob("*.h")}
    assert len(texts) > 30
    found = cycle(references(texts))
    assert found is None, f"headers that include or name each other: {' -> '.join(found)}"


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": ["b"], "b": []}, None),
        ({"a": ["b", "c"], "b": ["c"], "c": []}, None),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
    ],
)
def test_cycles_are_found(graph, found):
    assert cycle(graph) == found


def test_names_in_comments_count():
    texts = {"pa_a.h": '#include "pa_b.h"', "pa_b.h": "/* a part of pa_a.h; pa_unknown.h */"}
    assert references(texts) == {"pa_a.h": ["pa_b.h"], "pa_b.h": ["pa_a.h"]}
