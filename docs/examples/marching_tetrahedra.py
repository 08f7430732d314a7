"""The surface where a field is zero, as triangles: each cube of a grid is cut into six tetrahedra.

A tetrahedron has no ambiguous cases, which marching cubes has (Doi and Koide, IEICE Transactions E74, 1991); Warp has
marching cubes. Threads take places for their triangles by an atomic counter.

    python docs/examples/marching_tetrahedra.py --picture marching_tetrahedra.png
"""

import argparse

import numpy as np

import pyarray as pa

# corner k of a cube is at (k & 1, k >> 1 & 1, k >> 2); all six tetrahedra have the diagonal from corner 0 to corner 7
TETRAHEDRA = ((0, 1, 3, 7), (0, 3, 2, 7), (0, 2, 6, 7), (0, 6, 4, 7), (0, 4, 5, 7), (0, 5, 1, 7))


def triangles_by_case():
    """For each set of corners inside (as bits): up to two triangles, each of three edges (corner inside, outside)."""
    table = np.full((16, 2, 3, 2), -1, np.int32)
    for case in range(1, 15):
        inside = [k for k in range(4) if case >> k & 1]
        outside = [k for k in range(4) if not case >> k & 1]
        if len(inside) == 2:
            (a, b), (c, d) = inside, outside
            table[case] = [[(a, c), (a, d), (b, c)], [(b, c), (a, d), (b, d)]]
        else:
            table[case, 0] = [(i, o) for i in inside for o in outside]
        orient(table[case])
    return table


def orient(triangles):
    """Let them all turn around the direction from inside to outside, for corners at the unit points."""
    at = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], float)  # as those of all six
    for triangle in triangles:
        p, q, r = ((at[a] + at[b]) / 2 for a, b in triangle)
        if np.cross(q - p, r - p) @ sum(at[b] - at[a] for a, b in triangle) < 0:
            triangle[[1, 2]] = triangle[[2, 1]]


@pa.func
def corner(field, i, j, k, number):
    """Position and value of a corner of a cube."""
    x, y, z = i + (number & 1), j + (number >> 1 & 1), k + (number >> 2)
    return pa.array([x, y, z], dtype=pa.float32), field[x, y, z]


@pa.kernel
def march(mesh: pa.ndarray[pa.float32, (None, 3, 3)], count, field, tetrahedra, table):
    """Triangles where the field's sign changes; `count` goes on where the mesh is full."""
    for i, j, k in pa.ndrange(field.shape[0] - 1, field.shape[1] - 1, field.shape[2] - 1):
        for t in range(6):
            case = 0
            for c in range(4):
                _, value = corner(field, i, j, k, tetrahedra[t, c])
                case |= (value < 0) << c
            for n in range(2):
                if table[case, n, 0, 0] < 0:
                    break
                place = pa.atomic_add(count, 0, 1)
                if place < mesh.shape[0]:
                    for e in range(3):
                        p, f = corner(field, i, j, k, tetrahedra[t, table[case, n, e, 0]])
                        q, g = corner(field, i, j, k, tetrahedra[t, table[case, n, e, 1]])
                        mesh[place, e] = p + f / (f - g) * (q - p)


def surface(field, device=None):
    """Triangles, in an open order, as an array of three corners each."""
    field = pa.asarray(field, dtype=pa.float32, device=device)
    tetrahedra, table = (pa.asarray(a, dtype=pa.int32, device=device) for a in (TETRAHEDRA, triangles_by_case()))
    size = 1000
    while True:
        mesh, count = (
            pa.empty((size, 3, 3), dtype=pa.float32, device=device),
            pa.zeros(1, dtype=pa.int64, device=device),
        )
        march(mesh, count, field, tetrahedra, table)
        if (size := int(count[0])) <= mesh.shape[0]:
            return pa.asnumpy(mesh[:size])


def reference(field):
    """The number of triangles: one where one corner or three are inside, two where two are."""
    n, total = [s - 1 for s in field.shape], 0
    for four in TETRAHEDRA:
        at = [field[k & 1 :, k >> 1 & 1 :, k >> 2 :][: n[0], : n[1], : n[2]] < 0 for k in four]
        total += np.take([0, 1, 2, 1, 0], np.sum(at, axis=0)).sum()
    return total


def grid(size):
    return np.mgrid[:size, :size, :size] / (size - 1) * 2 - 1


def check(device=None):
    x, y, z = grid(24)
    field = np.sqrt(x**2 + y**2 + z**2) - 0.7
    mesh = surface(field, device)
    assert len(mesh) == reference(field.astype(np.float32))
    p, q, r = np.moveaxis(mesh, 1, 0) / 23 * 2 - 1
    area = np.linalg.norm(np.cross(q - p, r - p), axis=1).sum() / 2
    volume = np.einsum("ij,ij->", p, np.cross(q, r)) / 6  # the divergence theorem; positive where all face outside
    np.testing.assert_allclose([area, volume], [4 * np.pi * 0.7**2, 4 / 3 * np.pi * 0.7**3], rtol=0.02)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    x, y, z = grid(32) * 3.6
    field = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)  # Schoen's gyroid
    mesh = surface(np.maximum(field, np.sqrt(x**2 + y**2 + z**2) - 3.5), device)
    plot = plt.figure(figsize=(4, 4)).add_axes((-0.15, -0.15, 1.3, 1.3), projection="3d")
    corners = mesh.reshape(-1, 3)
    light = plt.matplotlib.colors.LightSource(azdeg=300, altdeg=50)
    plot.plot_trisurf(*corners.T, triangles=np.arange(len(corners)).reshape(-1, 3), color="tan", lightsource=light)
    plot.set_axis_off()
    plot.figure.savefig(path, dpi=70)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("a ball has the right number of triangles, area and volume")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
