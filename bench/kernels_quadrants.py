"""The programs of docs/gallery.md in Quadrants: the kernels of each case of bench/ports.py, called with NumPy's arrays,
which it takes in place on CPUs."""

# no `from __future__ import annotations`: Quadrants evaluates annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .peers import quadrants

qd: Any = quadrants()
if qd is None:
    raise ImportError("Quadrants can't be used")

F, D = qd.f32, qd.f64
vec2, vec3, mat2 = qd.types.vector(2, F), qd.types.vector(3, F), qd.types.matrix(2, 2, F)


def array(dtype: Any, ndim: int) -> Any:
    return qd.types.ndarray(dtype=dtype, ndim=ndim)


@qd.kernel
def game_of_life(after: array(qd.u8, 2), old: array(qd.u8, 2)):
    height, width = old.shape[0], old.shape[1]
    for i, j in qd.ndrange(height, width):
        above, below = (i + height - 1) % height, (i + 1) % height
        left, right = (j + width - 1) % width, (j + 1) % width
        around = qd.i32(old[above, left]) + old[above, j] + old[above, right] + old[i, left] + old[i, right]
        around += qd.i32(old[below, left]) + old[below, j] + old[below, right]
        after[i, j] = qd.u8(1 if around == 3 or (around == 2 and old[i, j] == 1) else 0)


@qd.kernel
def mandelbrot(times: array(qd.i32, 2), left: D, top: D, pixel: D, limit: qd.i32):
    for i, j in qd.ndrange(times.shape[0], times.shape[1]):
        cx, cy = left + j * pixel, top - i * pixel
        x, y, found = cx, cy, limit
        for step in range(limit):
            if x * x + y * y > 4:
                found = step
                break
            x, y = x * x - y * y + cx, 2 * x * y + cy
        times[i, j] = found


@qd.func
def scene(p):
    nearest, material = p[1], 0
    ball = (p - vec3(-0.8, 0.7, 0.0)).norm() - 0.7
    if ball < nearest:
        nearest, material = ball, 1
    around = qd.sqrt((p[0] - 0.9) ** 2 + p[2] ** 2) - 0.6
    ring = qd.sqrt(around**2 + (p[1] - 0.3) ** 2) - 0.25
    if ring < nearest:
        nearest, material = ring, 2
    return nearest, material


@qd.kernel
def ray_marcher(
    image: array(vec3, 2), depth: array(F, 2), camera_height: F, camera_distance: F, zoom: F, tilt: F, close: F, far: F,
):  # fmt: skip
    height, width = depth.shape[0], depth.shape[1]
    for i, j in qd.ndrange(height, width):
        up = (height / 2.0 - i - 0.5) / height + tilt
        direction = vec3((j + 0.5 - width / 2.0) / height, up, -zoom).normalized()
        origin, light = vec3(0.0, camera_height, camera_distance), vec3(0.48, 0.64, 0.6)
        t, material = 0.0, 0
        for _ in range(200):
            near, material_here = scene(origin + t * direction)
            t += near
            material = material_here
            if near < close or t > far:
                break
        depth[i, j] = t
        color = vec3(0.55, 0.7, 0.9) * (1.0 - 0.5 * direction[1])
        if t < far:
            p = origin + t * direction
            n = vec3(0.0)
            for axis in qd.static(range(3)):
                e = vec3(0.0)
                e[axis] = 1e-3
                n[axis] = scene(p + e)[0] - scene(p - e)[0]
            n = n.normalized()
            color = vec3(0.15, 0.4, 0.7)
            if material == 0:
                color = vec3(0.7, 0.66, 0.6)
            elif material == 1:
                color = vec3(0.85, 0.25, 0.15)
            bright, s, start = 1.0, 0.05, p + 0.01 * n
            while bright > 0.01 and s < 6:
                near = scene(start + s * light)[0]
                bright = min(bright, 12.0 * near / s)
                s += max(near, 0.02)
            color *= 0.25 + 0.85 * max(n.dot(light), 0.0) * max(bright, 0.0)
        image[i, j] = qd.sqrt(qd.min(color, 1.0))


@qd.kernel
def nbody(out: array(vec3, 1), positions: array(vec3, 1), masses: array(F, 1), softening: F):
    for i in range(out.shape[0]):
        p, total = positions[i], vec3(0.0)
        for j in range(positions.shape[0]):
            d = positions[j] - p
            square = d.dot(d) + softening
            total += masses[j] / (square * qd.sqrt(square)) * d
        out[i] = total


@qd.func
def cell_of(p, reach, columns, rows):
    x, y = min(max(qd.i32(p[0] / reach), 0), columns - 1), min(max(qd.i32(p[1] / reach), 0), rows - 1)
    return x, y


@qd.kernel
def sph(
    force: array(vec2, 1), density: array(F, 1), start: array(qd.i64, 1), order: array(qd.i64, 1),
    positions: array(vec2, 1), velocities: array(vec2, 1), columns: qd.i32, rows: qd.i32, reach: F, mass: F, rest: F,
    stiffness: F, viscosity: F,
):  # fmt: skip
    for i in range(density.shape[0]):
        p, total = positions[i], 0.0
        x, y = cell_of(p, reach, columns, rows)
        for row in range(max(y - 1, 0), min(y + 2, rows)):
            for column in range(max(x - 1, 0), min(x + 2, columns)):
                c = row * columns + column
                for k in range(qd.i32(start[c]), qd.i32(start[c + 1])):
                    d = p - positions[order[k]]
                    near = max(reach * reach - d.dot(d), 0.0)
                    total += near * near * near
        density[i] = mass * 4 / (qd.math.pi * reach**8) * total
    for i in range(density.shape[0]):
        p, v, total = positions[i], velocities[i], vec2(0.0)
        over = max(density[i] - rest, 0.0)
        x, y = cell_of(p, reach, columns, rows)
        for row in range(max(y - 1, 0), min(y + 2, rows)):
            for column in range(max(x - 1, 0), min(x + 2, columns)):
                c = row * columns + column
                for k in range(qd.i32(start[c]), qd.i32(start[c + 1])):
                    j = order[k]
                    d = p - positions[j]
                    square = d.dot(d)
                    if square > 0 and square < reach * reach:
                        r = qd.sqrt(square)
                        weight = mass / (density[j] * qd.math.pi * reach**5)
                        pressure = stiffness * (over + max(density[j] - rest, 0.0)) / 2
                        along = pressure * 30 * (reach - r) * (reach - r) / r * weight
                        total += along * d + (velocities[j] - v) * (viscosity * 40 * (reach - r) * weight)
        force[i] = total


@qd.kernel
def mpm(
    x: array(vec2, 1), v: array(vec2, 1), c: array(mat2, 1), volume: array(F, 1), momentum: array(vec2, 2),
    mass: array(F, 2), n: qd.i32, dt: F, stiffness: F, rest_volume: F, particle_mass: F, gravity: F,
):  # fmt: skip
    dx = 1.0 / n
    for i, j in qd.ndrange(n, n):
        momentum[i, j] = vec2(0.0)
        mass[i, j] = 0.0
    for p in range(x.shape[0]):
        base = qd.cast(x[p] * n - 0.5, qd.i32)
        f = x[p] * n - base
        w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
        stress = -dt * 4 * stiffness * rest_volume * (volume[p] - 1) / (dx * dx)
        affine = mat2([[stress, 0.0], [0.0, stress]]) + particle_mass * c[p]
        for a, b in qd.static(qd.ndrange(3, 3)):
            d = (vec2(a, b) - f) * dx
            weight = w[a][0] * w[b][1]
            momentum[base[0] + a, base[1] + b] += weight * (particle_mass * v[p] + affine @ d)
            mass[base[0] + a, base[1] + b] += weight * particle_mass
    for i, j in qd.ndrange(n, n):
        if mass[i, j] > 0:
            g = momentum[i, j] / mass[i, j]
            g[1] -= dt * gravity
            if (i < 3 and g[0] < 0) or (i > n - 3 and g[0] > 0):
                g[0] = 0.0
            if (j < 3 and g[1] < 0) or (j > n - 3 and g[1] > 0):
                g[1] = 0.0
            momentum[i, j] = g
    for p in range(x.shape[0]):
        base = qd.cast(x[p] * n - 0.5, qd.i32)
        f = x[p] * n - base
        w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
        speed, gradient = vec2(0.0), mat2(0.0)
        for a, b in qd.static(qd.ndrange(3, 3)):
            weight = w[a][0] * w[b][1]
            g = momentum[base[0] + a, base[1] + b]
            speed += weight * g
            gradient += 4 * weight / dx * g.outer_product(vec2(a, b) - f)
        v[p] = speed
        c[p] = gradient
        x[p] += dt * speed
        volume[p] *= 1 + dt * gradient.trace()


@qd.kernel
def bvh(
    hits: array(qd.i64, 1), distances: array(F, 1), low: array(vec3, 1), high: array(vec3, 1),
    triangles: array(vec3, 2), leaves: qd.i32, origins: array(vec3, 1), directions: array(vec3, 1),
):  # fmt: skip
    for i in range(hits.shape[0]):
        hit, nearest = -1, F(qd.math.inf)
        o, d = origins[i], directions[i]
        stack = qd.Vector([0] * 40)
        stack[0] = 1
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            a, b = (low[node] - o) / d, (high[node] - o) / d
            near, beyond = qd.min(a, b), qd.max(a, b)
            enter = max(near[0], near[1], near[2], 0.0)
            leave = min(beyond[0], beyond[1], beyond[2], nearest)
            if low[node][0] <= high[node][0] and enter <= leave:
                if node < leaves:
                    stack[depth] = 2 * node + 1
                    stack[depth + 1] = 2 * node
                    depth += 2
                else:
                    k = node - leaves
                    edge, other, t = (
                        triangles[k, 1] - triangles[k, 0],
                        triangles[k, 2] - triangles[k, 0],
                        o - triangles[k, 0],
                    )
                    p, q = d.cross(other), t.cross(edge)
                    determinant = edge.dot(p)
                    if determinant != 0:
                        u, v, distance = t.dot(p) / determinant, d.dot(q) / determinant, other.dot(q) / determinant
                        if u >= 0 and v >= 0 and u + v <= 1 and distance > 0 and distance < nearest:
                            hit, nearest = k, distance
        hits[i] = hit
        distances[i] = nearest


@qd.kernel
def cloth(
    after: array(vec3, 2), velocities: array(vec3, 2), positions: array(vec3, 2), neighbours: array(qd.i64, 2), cell: F,
    stiffness: F, damping: F, drag: F, gravity: F, step: F,
):  # fmt: skip
    rows, columns = positions.shape[0], positions.shape[1]
    for i, j in qd.ndrange(rows, columns):
        p, v = positions[i, j], velocities[i, j]
        total = vec3(0.0, -gravity, 0.0) - drag * v
        for k in range(neighbours.shape[0]):
            a, b = qd.i32(neighbours[k, 0]), qd.i32(neighbours[k, 1])
            rest = cell * qd.sqrt(F(a * a + b * b))
            for s in qd.static(range(2)):
                m, n = i + (2 * s - 1) * a, j + (2 * s - 1) * b
                if m >= 0 and m < rows and n >= 0 and n < columns:
                    d = positions[m, n] - p
                    length = d.norm()
                    along = d / length
                    pull = stiffness * (length / rest - 1) * rest + damping * (velocities[m, n] - v).dot(along)
                    total += pull * along
        after[i, j] = v + step * total


@qd.kernel
def lattice_boltzmann(
    after: array(D, 3), old: array(D, 3), solid: array(qd.u1, 2), e: array(qd.i64, 2), w: array(D, 1),
    opposite: array(qd.i64, 1), relaxation: D, speed: D,
):  # fmt: skip
    height, width = old.shape[0], old.shape[1]
    for y, x in qd.ndrange(height, width):
        f = qd.Vector([0.0] * 9, dt=D)
        density, ux, uy = D(0.0), D(0.0), D(0.0)
        for k in qd.static(range(9)):
            sx = min(max(x - qd.i32(e[k, 0]), 0), width - 1)
            sy = (y - qd.i32(e[k, 1]) + height) % height
            f[k] = old[y, x, qd.i32(opposite[k])] if solid[sy, sx] else old[sy, sx, k]
            density += f[k]
        for k in qd.static(range(9)):
            ux += f[k] * e[k, 0] / density
            uy += f[k] * e[k, 1] / density
        if x == 0:
            density, ux, uy = D(1.0), speed, D(0.0)
        for k in qd.static(range(9)):
            along = e[k, 0] * ux + e[k, 1] * uy
            rest = w[k] * density * (1 + 3 * along + 4.5 * along * along - 1.5 * (ux * ux + uy * uy))
            after[y, x, k] = rest if x == 0 else f[k] + relaxation * (rest - f[k])


@qd.kernel
def jacobi(after: array(D, 2), old: array(D, 2), change: array(D, 1)):
    change[0] = 0.0
    for i, j in qd.ndrange((1, old.shape[0] - 1), (1, old.shape[1] - 1)):
        mean = (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]) / 4
        qd.atomic_max(change[0], abs(mean - old[i, j]))
        after[i, j] = mean


@qd.kernel
def kmeans(
    labels: array(qd.i32, 1), means: array(D, 2), sums: array(qd.i64, 2), counts: array(qd.i64, 1), points: array(D, 2),
    unit: D,
):  # fmt: skip
    for i in range(labels.shape[0]):
        nearest, best = 0, D(qd.math.inf)
        for k in range(means.shape[0]):
            a, b = points[i, 0] - means[k, 0], points[i, 1] - means[k, 1]
            if a * a + b * b < best:
                nearest, best = k, a * a + b * b
        labels[i] = nearest
        counts[nearest] += 1
        for axis in qd.static(range(2)):
            sums[nearest, axis] += qd.i64(points[i, axis] * unit + 0.5)
    for k in range(means.shape[0]):
        for axis in qd.static(range(2)):
            if counts[k] > 0:
                means[k, axis] = D(sums[k, axis]) / (unit * counts[k])
            sums[k, axis] = 0
        counts[k] = 0


@qd.kernel
def sparse_product(
    out: array(D, 1), start: array(qd.i64, 1), columns: array(qd.i32, 1), values: array(D, 1), x: array(D, 1),
    product: array(D, 1),
):  # fmt: skip
    product[0] = 0.0
    for i in range(out.shape[0]):
        total = D(0.0)
        for k in range(qd.i32(start[i]), qd.i32(start[i + 1])):
            total += values[k] * x[columns[k]]
        out[i] = total
        product[0] += x[i] * total


@qd.kernel
def layer_norm(
    y: array(F, 2), mean: array(F, 1), scale: array(F, 1), x: array(F, 2), weight: array(F, 1), bias: array(F, 1),
    epsilon: F,
):  # fmt: skip
    for i in range(x.shape[0]):
        n, total, square = x.shape[1], 0.0, 0.0
        for j in range(n):
            total += x[i, j]
        middle = total / n
        for j in range(n):
            square += (x[i, j] - middle) ** 2
        by = 1 / qd.sqrt(square / n + epsilon)
        for j in range(n):
            y[i, j] = (x[i, j] - middle) * by * weight[j] + bias[j]
        mean[i] = middle
        scale[i] = by


@qd.kernel
def gray_scott(
    new_u: array(F, 2), new_v: array(F, 2), u: array(F, 2), v: array(F, 2), feed: F, kill: F, spread_u: F, spread_v: F,
):  # fmt: skip
    height, width = u.shape[0], u.shape[1]
    for i, j in qd.ndrange(height, width):
        up, down, left, right = (i + height - 1) % height, (i + 1) % height, (j + width - 1) % width, (j + 1) % width
        eaten = u[i, j] * v[i, j] * v[i, j]
        du = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4 * u[i, j]
        dv = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4 * v[i, j]
        new_u[i, j] = u[i, j] + spread_u * du - eaten + feed * (1 - u[i, j])
        new_v[i, j] = v[i, j] + spread_v * dv + eaten - (feed + kill) * v[i, j]


# it has no erfc, so no Black-Scholes
CASES: dict[str, Callable[..., None]] = {
    kernel.__name__: kernel
    for kernel in (
        game_of_life, mandelbrot, ray_marcher, nbody, sph, mpm, bvh, cloth, lattice_boltzmann, jacobi, kmeans,
        sparse_product, layer_norm, gray_scott,
    )
}  # fmt: skip


def make(name: str, args: dict[str, Any]) -> tuple[Callable[[], None], dict[str, Any]]:
    """A call of the case, and the arrays that it changes, by name."""
    there = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in args.items()}
    there |= {k: v.item() for k, v in there.items() if isinstance(v, np.generic)}  # others aren't cached
    kernel = CASES[name]
    return lambda: kernel(*there.values()), there
