"""Rays meet triangles by way of a tree of boxes (a bounding volume hierarchy).

Triangles are sorted along a Morton curve and pairs of neighbours get boxes, pairs of pairs, and so on: node n of the
implicit tree has the children 2n and 2n + 1. Sorting by Morton codes is that of Lauterbach et al., "Fast BVH
construction on GPUs" (Eurographics 2009), the ray test Möller's and Trumbore's (1997). Warp has BVH queries.

    python docs/examples/bvh.py --picture bvh.png
"""

import argparse
import math
from dataclasses import dataclass

import numpy as np

import pyarray as pa

V3 = pa.ndarray[pa.float32, (None, 3)]
Triangles = pa.ndarray[pa.float32, (None, 3, 3)]


@dataclass
class Tree:
    low: V3
    high: V3
    triangles: Triangles  # in the order of the leaves, which are nodes from `leaves` on
    leaves: int


@pa.func
def spread(x):
    """Ten bits with two zeros between each."""
    code = 0
    for bit in range(10):
        code |= (x >> bit & 1) << 3 * bit
    return code


@pa.kernel
def morton(codes, triangles: Triangles, low: pa.ndarray[pa.float32, (3,)], size: pa.ndarray[pa.float32, (3,)]):
    for i in range(codes.size):
        cell = ((triangles[i].sum(axis=0) / 3 - low) / size * 1023).astype(pa.int64)
        codes[i] = spread(cell[0]) | spread(cell[1]) << 1 | spread(cell[2]) << 2


@pa.kernel
def bound(tree: Tree):
    for i in range(tree.leaves):
        if i < tree.triangles.shape[0]:
            tree.low[tree.leaves + i] = tree.triangles[i].min(axis=0)
            tree.high[tree.leaves + i] = tree.triangles[i].max(axis=0)


@pa.kernel
def join(tree: Tree, first: int):
    """The boxes of one level: nodes from `first` to below 2 * first."""
    for k in range(first):
        a, b = 2 * (first + k), 2 * (first + k) + 1
        tree.low[first + k] = pa.minimum(tree.low[a], tree.low[b])
        tree.high[first + k] = pa.maximum(tree.high[a], tree.high[b])


@pa.func
def enters(low, high, origin, direction, nearest):
    """Whether a ray meets a box before `nearest`; a box of nothing is from inf to -inf."""
    a, b = (low - origin) / direction, (high - origin) / direction
    enter, leave = pa.where(a < b, a, b), pa.where(a < b, b, a)
    for k in range(3):
        if enter[k] > leave[(k + 1) % 3] or enter[k] > leave[(k + 2) % 3] or enter[k] > nearest or leave[k] < 0:
            return False
    return low[0] <= high[0]


@pa.func
def meets(triangle, origin, direction):
    """The distance to a triangle along a ray, inf without a hit."""
    edge, other, t = triangle[1] - triangle[0], triangle[2] - triangle[0], origin - triangle[0]
    p, q = pa.cross(direction, other), pa.cross(t, edge)
    determinant = edge @ p
    if determinant == 0:
        return math.inf
    u, v, distance = t @ p / determinant, direction @ q / determinant, other @ q / determinant
    return distance if u >= 0 and v >= 0 and u + v <= 1 and distance > 0 else math.inf


@pa.kernel
def trace(hits, distances, tree: Tree, origins: V3, directions: V3):
    """Of each ray: the first triangle on its way, -1 for none, and how far it is."""
    for i in range(hits.size):
        hit, nearest = -1, pa.float32(math.inf)
        stack = pa.zeros(40, dtype=pa.int32)
        stack[0], depth = 1, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if not enters(tree.low[node], tree.high[node], origins[i], directions[i], nearest):
                continue
            if node < tree.leaves:
                stack[depth], stack[depth + 1] = 2 * node + 1, 2 * node
                depth += 2
            else:
                distance = meets(tree.triangles[node - tree.leaves], origins[i], directions[i])
                if distance < nearest:
                    hit, nearest = node - tree.leaves, distance
        hits[i], distances[i] = hit, nearest


def build(triangles):
    """The tree over an array of triangles, and their order in it."""
    n, device = triangles.shape[0], triangles.device
    low, high = pa.min(triangles, axis=(0, 1)), pa.max(triangles, axis=(0, 1))
    codes = pa.empty(n, dtype=pa.int64, device=device)
    morton(codes, triangles, low, pa.maximum(high - low, 1e-20))
    order, leaves = pa.argsort(codes), 1 << max(n - 1, 1).bit_length()
    nothing = pa.full((2 * leaves, 3), math.inf, dtype=pa.float32, device=device)
    tree = Tree(nothing, -nothing, pa.take(triangles, order, axis=0), leaves)
    bound(tree)
    first = leaves // 2
    while first:
        join(tree, first)
        first //= 2
    return tree, order


def shoot(triangles, origins, directions, device=None):
    """Of each ray: the number of the triangle that it meets first, -1 for none, and the distance."""
    triangles, origins, directions = (
        pa.asarray(a, dtype=pa.float32, device=device) for a in (triangles, origins, directions)
    )
    tree, order = build(triangles)
    hits = pa.empty(origins.shape[0], dtype=pa.int64, device=device)
    distances = pa.empty(origins.shape[0], dtype=pa.float32, device=device)
    trace(hits, distances, tree, origins, directions)
    return pa.asnumpy(pa.where(hits >= 0, order[pa.maximum(hits, 0)], -1)), pa.asnumpy(distances)


def reference(triangles, origins, directions):
    """The distances, of all rays to all triangles."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    t, d = origins[:, None] - a, directions[:, None]
    p, q = np.cross(d, c - a), np.cross(t, b - a)
    with np.errstate(all="ignore"):
        u, v, w = ((x * y).sum(-1) / ((b - a) * p).sum(-1) for x, y in ((t, p), (d, q), (c - a, q)))
        return np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (w > 0), w, np.inf).min(1)


def knot(around, along):
    """A trefoil knot's surface as triangles."""
    s = np.linspace(0, 2 * np.pi, along, endpoint=False)
    line = np.stack([np.sin(s) + 2 * np.sin(2 * s), np.cos(s) - 2 * np.cos(2 * s), -np.sin(3 * s)], 1)
    tangent = np.roll(line, -1, 0) - np.roll(line, 1, 0)
    side = np.cross(tangent, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, tangent)
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    angle = np.linspace(0, 2 * np.pi, around, endpoint=False)[:, None, None]
    a = line + 0.55 * (np.cos(angle) * side + np.sin(angle) * up)
    b, c, d = np.roll(a, -1, 0), np.roll(a, -1, 1), np.roll(np.roll(a, -1, 0), -1, 1)
    return np.concatenate([np.stack([a, b, c], 2).reshape(-1, 3, 3), np.stack([b, d, c], 2).reshape(-1, 3, 3)])


def rays(height, width):
    y, x = np.mgrid[:height, :width]
    directions = np.stack(
        [(x + 0.5) / width - 0.5, (0.5 - (y + 0.5) / height) * height / width, np.full(x.shape, -1.0)], 2
    )
    return np.broadcast_to([0.0, 0.0, 7.0], (height * width, 3)), directions.reshape(-1, 3)


def check(device=None):
    triangles, (origins, directions) = knot(8, 40), rays(20, 20)
    hits, distances = shoot(triangles, origins, directions, device)
    expected = reference(triangles, origins, directions)
    assert np.mean(np.isfinite(distances) == np.isfinite(expected)) > 0.99, "rays along an edge may miss by rounding"
    both = np.isfinite(distances) & np.isfinite(expected)
    np.testing.assert_allclose(distances[both], expected[both], rtol=1e-3)
    assert np.all((hits >= 0) == np.isfinite(distances))


def draw(path, device=None):
    from matplotlib import pyplot as plt

    triangles, (origins, directions) = knot(40, 400), rays(240, 320)
    hits, _ = shoot(triangles, origins, directions, device)
    a, b, c = np.moveaxis(triangles, 1, 0)
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    light = np.abs(normal @ [0.4, 0.6, 0.7]) * 0.9 + 0.1
    plt.imsave(path, np.where(hits >= 0, light[hits], 0).reshape(240, 320), cmap="copper", vmin=0, vmax=1.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("rays meet what they meet when all triangles are tried")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
