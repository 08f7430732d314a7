"""The programs of docs/gallery.md in Warp: the kernels of each case of bench/ports.py, and how they are launched.

Arguments go by their names, as arrays of the types that the kernels say.
"""

# no `from __future__ import annotations`: Warp evaluates annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

wp.config.quiet = True
wp.config.enable_backward = False
vec9 = wp.types.vector(length=9, dtype=wp.float64)
F, D = wp.float32, wp.float64


@wp.kernel
def game_of_life(after: wp.array2d(dtype=wp.uint8), old: wp.array2d(dtype=wp.uint8)):
    i, j = wp.tid()
    height, width = old.shape[0], old.shape[1]
    above, below = (i + height - 1) % height, (i + 1) % height
    left, right = (j + width - 1) % width, (j + 1) % width
    around = int(old[above, left]) + int(old[above, j]) + int(old[above, right])
    around += int(old[i, left]) + int(old[i, right])
    around += int(old[below, left]) + int(old[below, j]) + int(old[below, right])
    alive = around == 3 or (around == 2 and int(old[i, j]) == 1)
    after[i, j] = wp.uint8(wp.where(alive, 1, 0))


@wp.kernel
def mandelbrot(times: wp.array2d(dtype=wp.int32), left: D, top: D, pixel: D, limit: int):
    i, j = wp.tid()
    cx, cy = left + D(j) * pixel, top - D(i) * pixel
    x, y = D(cx), D(cy)
    found = wp.int32(limit)
    for step in range(limit):
        if x * x + y * y > D(4.0):
            found = step
            break
        x, y = x * x - y * y + cx, D(2.0) * x * y + cy
    times[i, j] = found


@wp.func
def scene(p: wp.vec3):
    nearest = wp.vec2(p[1], 0.0)
    ball = wp.length(p - wp.vec3(-0.8, 0.7, 0.0)) - 0.7
    if ball < nearest[0]:
        nearest = wp.vec2(ball, 1.0)
    around = wp.sqrt((p[0] - 0.9) * (p[0] - 0.9) + p[2] * p[2]) - 0.6
    ring = wp.sqrt(around * around + (p[1] - 0.3) * (p[1] - 0.3)) - 0.25
    if ring < nearest[0]:
        nearest = wp.vec2(ring, 2.0)
    return nearest


@wp.kernel
def ray_marcher(
    image: wp.array2d(dtype=wp.vec3), depth: wp.array2d(dtype=F), camera_height: F, camera_distance: F,
    zoom: F, tilt: F, close: F, far: F,
):  # fmt: skip
    i, j = wp.tid()
    height, width = F(depth.shape[0]), F(depth.shape[1])
    up = (height / 2.0 - F(i) - 0.5) / height + tilt
    direction = wp.normalize(wp.vec3((F(j) + 0.5 - width / 2.0) / height, up, -zoom))
    origin, light = wp.vec3(0.0, camera_height, camera_distance), wp.vec3(0.48, 0.64, 0.6)
    t, material = F(0.0), F(0.0)
    for _ in range(200):
        here = scene(origin + t * direction)
        t += here[0]
        material = here[1]
        if here[0] < close or t > far:
            break
    depth[i, j] = t
    color = wp.vec3(0.55, 0.7, 0.9) * (1.0 - 0.5 * direction[1])
    if t < far:
        p = origin + t * direction
        ex, ey, ez = wp.vec3(1.0e-3, 0.0, 0.0), wp.vec3(0.0, 1.0e-3, 0.0), wp.vec3(0.0, 0.0, 1.0e-3)
        nx = scene(p + ex)[0] - scene(p - ex)[0]
        ny = scene(p + ey)[0] - scene(p - ey)[0]
        nz = scene(p + ez)[0] - scene(p - ez)[0]
        n = wp.normalize(wp.vec3(nx, ny, nz))
        color = wp.vec3(0.15, 0.4, 0.7)
        if material == 0.0:
            color = wp.vec3(0.7, 0.66, 0.6)
        elif material == 1.0:
            color = wp.vec3(0.85, 0.25, 0.15)
        bright, s = F(1.0), F(0.05)
        start = p + 0.01 * n
        while bright > 0.01 and s < 6.0:
            near = scene(start + s * light)[0]
            bright = wp.min(bright, 12.0 * near / s)
            s += wp.max(near, 0.02)
        color = color * (0.25 + 0.85 * wp.max(wp.dot(n, light), 0.0) * wp.max(bright, 0.0))
    red, green, blue = wp.min(color[0], 1.0), wp.min(color[1], 1.0), wp.min(color[2], 1.0)
    image[i, j] = wp.vec3(wp.sqrt(red), wp.sqrt(green), wp.sqrt(blue))


@wp.kernel
def nbody(out: wp.array(dtype=wp.vec3), positions: wp.array(dtype=wp.vec3), masses: wp.array(dtype=F), softening: F):
    i = wp.tid()
    p, total = positions[i], wp.vec3(0.0, 0.0, 0.0)
    for j in range(positions.shape[0]):
        d = positions[j] - p
        square = wp.dot(d, d) + softening
        total += masses[j] / (square * wp.sqrt(square)) * d
    out[i] = total


@wp.kernel
def sph_density(
    density: wp.array(dtype=F), start: wp.array(dtype=wp.int64), order: wp.array(dtype=wp.int64),
    positions: wp.array(dtype=wp.vec2), columns: int, rows: int, reach: F, mass: F,
):  # fmt: skip
    i = wp.tid()
    p, total = positions[i], F(0.0)
    x, y = wp.clamp(int(p[0] / reach), 0, columns - 1), wp.clamp(int(p[1] / reach), 0, rows - 1)
    for row in range(wp.max(y - 1, 0), wp.min(y + 2, rows)):
        for column in range(wp.max(x - 1, 0), wp.min(x + 2, columns)):
            c = row * columns + column
            for k in range(int(start[c]), int(start[c + 1])):
                d = p - positions[int(order[k])]
                near = wp.max(reach * reach - wp.dot(d, d), 0.0)
                total += near * near * near
    density[i] = mass * 4.0 / (wp.pi * wp.pow(reach, 8.0)) * total


@wp.kernel
def sph_force(
    force: wp.array(dtype=wp.vec2), density: wp.array(dtype=F), start: wp.array(dtype=wp.int64),
    order: wp.array(dtype=wp.int64), positions: wp.array(dtype=wp.vec2), velocities: wp.array(dtype=wp.vec2),
    columns: int, rows: int, reach: F, mass: F, rest: F, stiffness: F, viscosity: F,
):  # fmt: skip
    i = wp.tid()
    p, v, total = positions[i], velocities[i], wp.vec2(0.0, 0.0)
    over = wp.max(density[i] - rest, 0.0)
    x, y = wp.clamp(int(p[0] / reach), 0, columns - 1), wp.clamp(int(p[1] / reach), 0, rows - 1)
    for row in range(wp.max(y - 1, 0), wp.min(y + 2, rows)):
        for column in range(wp.max(x - 1, 0), wp.min(x + 2, columns)):
            c = row * columns + column
            for k in range(int(start[c]), int(start[c + 1])):
                j = int(order[k])
                d = p - positions[j]
                square = wp.dot(d, d)
                if square > 0.0 and square < reach * reach:
                    r = wp.sqrt(square)
                    weight = mass / (density[j] * wp.pi * wp.pow(reach, 5.0))
                    pressure = stiffness * (over + wp.max(density[j] - rest, 0.0)) / 2.0
                    along = pressure * 30.0 * (reach - r) * (reach - r) / r * weight
                    total += along * d + (velocities[j] - v) * (viscosity * 40.0 * (reach - r) * weight)
    force[i] = total


@wp.func
def spline(f: wp.vec2):
    a, b, c = wp.vec2(1.5, 1.5) - f, f - wp.vec2(1.0, 1.0), f - wp.vec2(0.5, 0.5)
    one = wp.vec2(0.75, 0.75) - wp.cw_mul(b, b)
    return wp.matrix_from_rows(0.5 * wp.cw_mul(a, a), one, 0.5 * wp.cw_mul(c, c))


@wp.kernel
def mpm_clear(momentum: wp.array2d(dtype=wp.vec2), mass: wp.array2d(dtype=F)):
    i, j = wp.tid()
    momentum[i, j] = wp.vec2(0.0, 0.0)
    mass[i, j] = F(0.0)


@wp.kernel
def mpm_scatter(
    x: wp.array(dtype=wp.vec2), v: wp.array(dtype=wp.vec2), c: wp.array(dtype=wp.mat22), volume: wp.array(dtype=F),
    momentum: wp.array2d(dtype=wp.vec2), mass: wp.array2d(dtype=F), n: int, dt: F, stiffness: F, rest_volume: F,
    particle_mass: F,
):  # fmt: skip
    p = wp.tid()
    cells, dx = F(n), 1.0 / F(n)
    q = x[p] * cells
    i, j = int(q[0] - 0.5), int(q[1] - 0.5)
    f = q - wp.vec2(F(i), F(j))
    w = spline(f)
    stress = -dt * 4.0 * stiffness * rest_volume * (volume[p] - 1.0) / (dx * dx)
    affine = stress * wp.identity(n=2, dtype=F) + particle_mass * c[p]
    for a in range(3):
        for b in range(3):
            d = (wp.vec2(F(a), F(b)) - f) * dx
            weight = w[a, 0] * w[b, 1]
            wp.atomic_add(momentum, i + a, j + b, weight * (particle_mass * v[p] + affine * d))
            wp.atomic_add(mass, i + a, j + b, weight * particle_mass)


@wp.kernel
def mpm_grid(momentum: wp.array2d(dtype=wp.vec2), mass: wp.array2d(dtype=F), n: int, dt: F, gravity: F):
    i, j = wp.tid()
    if mass[i, j] > 0.0:
        g = momentum[i, j] / mass[i, j]
        vx, vy = g[0], g[1] - dt * gravity
        if (i < 3 and vx < 0.0) or (i > n - 3 and vx > 0.0):
            vx = F(0.0)
        if (j < 3 and vy < 0.0) or (j > n - 3 and vy > 0.0):
            vy = F(0.0)
        momentum[i, j] = wp.vec2(vx, vy)


@wp.kernel
def mpm_gather(
    x: wp.array(dtype=wp.vec2), v: wp.array(dtype=wp.vec2), c: wp.array(dtype=wp.mat22), volume: wp.array(dtype=F),
    momentum: wp.array2d(dtype=wp.vec2), n: int, dt: F,
):  # fmt: skip
    p = wp.tid()
    cells = F(n)
    q = x[p] * cells
    i, j = int(q[0] - 0.5), int(q[1] - 0.5)
    f = q - wp.vec2(F(i), F(j))
    w = spline(f)
    speed, gradient = wp.vec2(0.0, 0.0), wp.mat22(0.0, 0.0, 0.0, 0.0)
    for a in range(3):
        for b in range(3):
            weight = w[a, 0] * w[b, 1]
            g = momentum[i + a, j + b]
            speed += weight * g
            gradient += 4.0 * weight * cells * wp.outer(g, wp.vec2(F(a), F(b)) - f)
    v[p] = speed
    c[p] = gradient
    x[p] = x[p] + dt * speed
    volume[p] = volume[p] * (1.0 + dt * wp.trace(gradient))


@wp.kernel
def bvh(
    hits: wp.array(dtype=wp.int64), distances: wp.array(dtype=F), low: wp.array(dtype=wp.vec3),
    high: wp.array(dtype=wp.vec3), triangles: wp.array2d(dtype=wp.vec3), leaves: int,
    origins: wp.array(dtype=wp.vec3), directions: wp.array(dtype=wp.vec3),
):  # fmt: skip
    i = wp.tid()
    hit, nearest = wp.int32(-1), F(wp.inf)
    o, d = origins[i], directions[i]
    stack = wp.zeros(shape=40, dtype=int)
    stack[0] = 1
    depth = wp.int32(1)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        a, b = wp.cw_div(low[node] - o, d), wp.cw_div(high[node] - o, d)
        enter, leave = wp.max(wp.max(wp.min(a, b)), 0.0), wp.min(wp.min(wp.max(a, b)), nearest)
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
                p, q = wp.cross(d, other), wp.cross(t, edge)
                determinant = wp.dot(edge, p)
                if determinant != 0.0:
                    u, v = wp.dot(t, p) / determinant, wp.dot(d, q) / determinant
                    distance = wp.dot(other, q) / determinant
                    if u >= 0.0 and v >= 0.0 and u + v <= 1.0 and distance > 0.0 and distance < nearest:
                        hit, nearest = k, distance
    hits[i] = wp.int64(hit)
    distances[i] = nearest


@wp.kernel
def cloth(
    after: wp.array2d(dtype=wp.vec3), velocities: wp.array2d(dtype=wp.vec3), positions: wp.array2d(dtype=wp.vec3),
    neighbours: wp.array2d(dtype=wp.int64), cell: F, stiffness: F, damping: F, drag: F, gravity: F, step: F,
):  # fmt: skip
    i, j = wp.tid()
    rows, columns = positions.shape[0], positions.shape[1]
    p, v = positions[i, j], velocities[i, j]
    total = wp.vec3(0.0, -gravity, 0.0) - drag * v
    for k in range(neighbours.shape[0]):
        a, b = int(neighbours[k, 0]), int(neighbours[k, 1])
        rest = cell * wp.sqrt(F(a * a + b * b))
        for s in range(2):
            m, n = i + (2 * s - 1) * a, j + (2 * s - 1) * b
            if m >= 0 and m < rows and n >= 0 and n < columns:
                d = positions[m, n] - p
                length = wp.length(d)
                along = d / length
                pull = stiffness * (length / rest - 1.0) * rest + damping * wp.dot(velocities[m, n] - v, along)
                total += pull * along
    after[i, j] = v + step * total


@wp.kernel
def lattice_boltzmann(
    after: wp.array3d(dtype=D), old: wp.array3d(dtype=D), solid: wp.array2d(dtype=wp.bool),
    e: wp.array2d(dtype=wp.int64), w: wp.array(dtype=D), opposite: wp.array(dtype=wp.int64), relaxation: D, speed: D,
):  # fmt: skip
    y, x = wp.tid()
    height, width = old.shape[0], old.shape[1]
    f = vec9()
    density, ux, uy = D(0.0), D(0.0), D(0.0)
    for k in range(9):
        sx, sy = wp.clamp(x - int(e[k, 0]), 0, width - 1), (y - int(e[k, 1]) + height) % height
        value = old[sy, sx, k]
        if solid[sy, sx]:
            value = old[y, x, int(opposite[k])]
        f[k] = value
        density += value
    for k in range(9):
        ux += f[k] * D(e[k, 0]) / density
        uy += f[k] * D(e[k, 1]) / density
    if x == 0:
        density, ux, uy = D(1.0), speed, D(0.0)
    for k in range(9):
        along = D(e[k, 0]) * ux + D(e[k, 1]) * uy
        square = D(1.5) * (ux * ux + uy * uy)
        rest = w[k] * density * (D(1.0) + D(3.0) * along + D(4.5) * along * along - square)
        after[y, x, k] = wp.where(x == 0, rest, f[k] + relaxation * (rest - f[k]))


@wp.func
def normal_cdf(x: D):
    return D(0.5) * wp.erfc(-x / wp.sqrt(D(2.0)))


@wp.kernel
def black_scholes(
    calls: wp.array(dtype=D), puts: wp.array(dtype=D), stock: wp.array(dtype=D), strike: wp.array(dtype=D),
    years: wp.array(dtype=D), rate: D, volatility: D,
):  # fmt: skip
    i = wp.tid()
    deviation = volatility * wp.sqrt(years[i])
    d1 = (wp.log(stock[i] / strike[i]) + (rate + volatility * volatility / D(2.0)) * years[i]) / deviation
    d2 = d1 - deviation
    discounted = strike[i] * wp.exp(-rate * years[i])
    calls[i] = stock[i] * normal_cdf(d1) - discounted * normal_cdf(d2)
    puts[i] = discounted * normal_cdf(-d2) - stock[i] * normal_cdf(-d1)


@wp.kernel
def jacobi_clear(change: wp.array(dtype=D)):
    change[0] = D(0.0)


@wp.kernel
def jacobi(after: wp.array2d(dtype=D), old: wp.array2d(dtype=D), change: wp.array(dtype=D)):
    i, j = wp.tid()
    if i > 0 and j > 0 and i < old.shape[0] - 1 and j < old.shape[1] - 1:
        mean = (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]) / D(4.0)
        wp.atomic_max(change, 0, wp.abs(mean - old[i, j]))
        after[i, j] = mean


@wp.kernel
def kmeans_assign(
    labels: wp.array(dtype=wp.int32), means: wp.array(dtype=wp.vec2d), sums: wp.array2d(dtype=wp.int64),
    counts: wp.array(dtype=wp.int64), points: wp.array(dtype=wp.vec2d), unit: D,
):  # fmt: skip
    i = wp.tid()
    p, nearest, best = points[i], wp.int32(0), D(wp.inf)
    for k in range(means.shape[0]):
        d = p - means[k]
        square = wp.dot(d, d)
        if square < best:
            nearest, best = k, square
    labels[i] = nearest
    wp.atomic_add(counts, nearest, wp.int64(1))
    for axis in range(2):
        wp.atomic_add(sums, nearest, axis, wp.int64(p[axis] * unit + D(0.5)))


@wp.kernel
def kmeans_means(
    means: wp.array(dtype=wp.vec2d), sums: wp.array2d(dtype=wp.int64), counts: wp.array(dtype=wp.int64), unit: D
):
    k = wp.tid()
    if counts[k] > wp.int64(0):
        means[k] = wp.vec2d(D(sums[k, 0]), D(sums[k, 1])) / (unit * D(counts[k]))
    counts[k] = wp.int64(0)
    sums[k, 0] = wp.int64(0)
    sums[k, 1] = wp.int64(0)


@wp.kernel
def product_clear(product: wp.array(dtype=D)):
    product[0] = D(0.0)


@wp.kernel
def sparse_product(
    out: wp.array(dtype=D), start: wp.array(dtype=wp.int64), columns: wp.array(dtype=wp.int32),
    values: wp.array(dtype=D), x: wp.array(dtype=D), product: wp.array(dtype=D),
):  # fmt: skip
    i = wp.tid()
    total = D(0.0)
    for k in range(int(start[i]), int(start[i + 1])):
        total += values[k] * x[columns[k]]
    out[i] = total
    wp.atomic_add(product, 0, x[i] * total)


@wp.kernel
def layer_norm_tiled(
    y: wp.array2d(dtype=F), mean: wp.array(dtype=F), scale: wp.array(dtype=F), x: wp.array2d(dtype=F),
    weight: wp.array(dtype=F), bias: wp.array(dtype=F), epsilon: F,
):  # fmt: skip
    i = wp.tid()
    row = wp.tile_load(x[i], shape=768)
    middle = wp.tile_extract(wp.tile_sum(row), 0) / 768.0
    apart = wp.tile_map(wp.sub, row, wp.tile_full(shape=768, value=middle, dtype=F))
    square = wp.tile_extract(wp.tile_sum(wp.tile_map(wp.mul, apart, apart)), 0)
    by = 1.0 / wp.sqrt(square / 768.0 + epsilon)
    scaled = wp.tile_map(wp.mul, apart * by, wp.tile_load(weight, shape=768))
    wp.tile_store(y[i], wp.tile_map(wp.add, scaled, wp.tile_load(bias, shape=768)))
    mean[i] = middle
    scale[i] = by


@wp.kernel
def layer_norm(
    y: wp.array2d(dtype=F), mean: wp.array(dtype=F), scale: wp.array(dtype=F), x: wp.array2d(dtype=F),
    weight: wp.array(dtype=F), bias: wp.array(dtype=F), epsilon: F,
):  # fmt: skip
    i = wp.tid()
    n, total, square = x.shape[1], F(0.0), F(0.0)
    for j in range(n):
        total += x[i, j]
    middle = total / F(n)
    for j in range(n):
        square += (x[i, j] - middle) * (x[i, j] - middle)
    by = 1.0 / wp.sqrt(square / F(n) + epsilon)
    for j in range(n):
        y[i, j] = (x[i, j] - middle) * by * weight[j] + bias[j]
    mean[i] = middle
    scale[i] = by


@wp.func
def laplacian(a: wp.array2d(dtype=F), i: int, j: int):
    height, width = a.shape[0], a.shape[1]
    up, down = wp.where(i > 0, i, height) - 1, wp.where(i + 1 < height, i + 1, 0)
    left, right = wp.where(j > 0, j, width) - 1, wp.where(j + 1 < width, j + 1, 0)
    return a[up, j] + a[down, j] + a[i, left] + a[i, right] - 4.0 * a[i, j]


@wp.kernel
def gray_scott(
    new_u: wp.array2d(dtype=F), new_v: wp.array2d(dtype=F), u: wp.array2d(dtype=F), v: wp.array2d(dtype=F),
    feed: F, kill: F, spread_u: F, spread_v: F,
):  # fmt: skip
    i, j = wp.tid()
    eaten = u[i, j] * v[i, j] * v[i, j]
    new_u[i, j] = u[i, j] + spread_u * laplacian(u, i, j) - eaten + feed * (1.0 - u[i, j])
    new_v[i, j] = v[i, j] + spread_v * laplacian(v, i, j) + eaten - (feed + kill) * v[i, j]


Launch = tuple[Any, Callable[[dict[str, Any]], Any]]


def _over(name: str, axes: int = 1) -> Callable[[dict[str, Any]], Any]:
    return lambda a: a[name].shape[:axes]


# case → its launches, each with what gives its dimensions
CASES: dict[str, tuple[Launch, ...]] = {
    "game_of_life": ((game_of_life, _over("after", 2)),),
    "mandelbrot": ((mandelbrot, _over("times", 2)),),
    "ray_marcher": ((ray_marcher, _over("depth", 2)),),
    "nbody": ((nbody, _over("out")),),
    "sph": ((sph_density, _over("density")), (sph_force, _over("density"))),
    "mpm": (
        (mpm_clear, _over("mass", 2)),
        (mpm_scatter, _over("x")),
        (mpm_grid, _over("mass", 2)),
        (mpm_gather, _over("x")),
    ),
    "bvh": ((bvh, _over("hits")),),
    "cloth": ((cloth, _over("after", 2)),),
    "lattice_boltzmann": ((lattice_boltzmann, _over("after", 2)),),
    "black_scholes": ((black_scholes, _over("calls")),),
    "jacobi": ((jacobi_clear, lambda a: 1), (jacobi, _over("old", 2))),
    "kmeans": ((kmeans_assign, _over("labels")), (kmeans_means, _over("means"))),
    "sparse_product": ((product_clear, lambda a: 1), (sparse_product, _over("out"))),
    "layer_norm": ((layer_norm, _over("mean")),),
    "gray_scott": ((gray_scott, _over("u", 2)),),
}


def make(
    name: str, args: dict[str, Any], device: str
) -> tuple[Callable[[], None], Callable[[tuple[str, ...]], dict[str, Any]]]:
    """A call of all launches of a case, and what gives arrays of its arguments."""
    launches = list(CASES[name])
    if name == "layer_norm" and device != "cpu":
        launches = [(layer_norm_tiled, None)]
    there: dict[str, Any] = {}
    for kernel, _ in launches:
        for parameter in kernel.adj.args:
            value = args[parameter.label]
            if isinstance(value, np.ndarray) and parameter.label not in there:
                there[parameter.label] = wp.array(value.copy(), dtype=parameter.type.dtype, device=device)
    calls = []
    for kernel, size in launches:
        inputs = [there.get(p.label, args[p.label]) for p in kernel.adj.args]
        if size is None:
            calls.append((wp.launch_tiled, {"dim": [args["mean"].size], "block_dim": 128}, kernel, inputs))
        else:
            calls.append((wp.launch, {"dim": size(args)}, kernel, inputs))

    def call() -> None:
        for launch, shape, kernel, inputs in calls:
            launch(kernel, inputs=inputs, device=device, **shape)

    return call, lambda names: {k: there[k].numpy() for k in names}
