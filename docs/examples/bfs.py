"""How far each vertex of a graph is from the first one: breadth-first search, a level at a time.

Edges are in compressed rows. A level's vertices are a queue, which threads fill by an atomic counter; who sets a
distance first, by an atomic exchange, adds the vertex (Merrill, Garland and Grimshaw, PPoPP 2012).

    python docs/examples/bfs.py
"""

import argparse
from dataclasses import dataclass

import numpy as np

import pyarray as pa


@dataclass
class Graph:
    """Vertex v has edges to targets[start[v]:start[v + 1]]."""

    start: pa.BufferView[pa.int64]
    targets: pa.BufferView[pa.int32]


@pa.kernel
def expand(distances, queue, following, count, graph: Graph, level: int):
    for n in range(queue.size):
        for k in range(graph.start[queue[n]], graph.start[queue[n] + 1]):
            target = graph.targets[k]
            if distances[target] < 0 and pa.atomic_cas(distances, target, -1, level + 1) == -1:
                following[pa.atomic_add(count, 0, 1)] = target


def distances_from(graph, vertices, first, device=None):
    """Steps from a vertex to each, -1 where no way leads."""
    graph = Graph(*(pa.asarray(part, device=device) for part in (graph.start, graph.targets)))
    distances = pa.full(vertices, -1, dtype=pa.int32, device=device)
    distances[first] = 0
    queue, following = (pa.full(vertices, first, dtype=pa.int32, device=device) for _ in range(2))
    size, level = 1, 0
    while size:
        count = pa.zeros(1, dtype=pa.int64, device=device)
        expand(distances, queue[:size], following, count, graph, level)
        queue, following = following, queue
        size, level = int(count[0]), level + 1
    return pa.asnumpy(distances)


def reference(graph, vertices, first):
    """Each step looks at all edges."""
    source = np.repeat(np.arange(vertices), np.diff(graph.start))
    distances = np.full(vertices, -1)
    distances[first] = level = 0
    while np.any(distances == level):
        reached = graph.targets[distances[source] == level]
        distances[reached[distances[reached] < 0]] = level = level + 1
    return distances


def random_graph(vertices, edges):
    """Edges between vertices that are near each other mostly, in both directions."""
    rng = np.random.default_rng(9)
    a = rng.integers(0, vertices, edges)
    b = (a + rng.geometric(min(50 / vertices, 1), edges)) % vertices
    source, target = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.argsort(source, kind="stable")
    start = np.searchsorted(source[order], np.arange(vertices + 1))
    return Graph(start.astype(np.int64), target[order].astype(np.int32))


def check(device=None):
    for vertices, edges in ((3000, 4000), (500, 200), (1, 0)):
        graph = random_graph(vertices, edges)
        expected = reference(graph, vertices, 0)
        np.testing.assert_array_equal(distances_from(graph, vertices, 0, device), expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--vertices", type=int, default=100_000)
    options = parser.parse_args()
    check(options.device)
    graph = random_graph(options.vertices, 2 * options.vertices)
    distances = distances_from(graph, options.vertices, 0, options.device)
    print(
        f"{np.mean(distances >= 0):.0%} of {options.vertices} vertices are reached, in at most {distances.max()} steps"
    )


if __name__ == "__main__":
    main()
