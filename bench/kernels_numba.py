"""The programs of docs/gallery.md in Numba: a function for each case of bench/ports.py, with `prange`."""

import math

import numba as nb
import numpy as np

parallel = nb.njit(parallel=True)
reordering = nb.njit(parallel=True, fastmath=True)  # sums in any order, as `pa.unordered` allows
function = nb.njit(inline="always")


@parallel
def game_of_life(new, old):
    height, width = old.shape
    for i in nb.prange(height):
        above, below = (i + height - 1) % height, (i + 1) % height
        for j in range(width):
            left, right = (j + width - 1) % width, (j + 1) % width
            around = old[above, left] + old[above, j] + old[above, right]
            around += old[i, left] + old[i, right]
            around += old[below, left] + old[below, j] + old[below, right]
            new[i, j] = around == 3 or (around == 2 and old[i, j] == 1)


@parallel
def mandelbrot(times, left, top, pixel, limit):
    height, width = times.shape
    for i in nb.prange(height):
        for j in range(width):
            c = complex(left + j * pixel, top - i * pixel)
            z, times[i, j] = c, limit
            for step in range(limit):
                if z.real * z.real + z.imag * z.imag > 4:
                    times[i, j] = step
                    break
                z = z * z + c


@function
def scene(x, y, z):
    distance, material = y, 0
    ball = math.sqrt((x + np.float32(0.8)) ** 2 + (y - np.float32(0.7)) ** 2 + z**2) - np.float32(0.7)
    if ball < distance:
        distance, material = ball, 1
    ring = math.hypot(math.hypot(x - np.float32(0.9), z) - np.float32(0.6), y - np.float32(0.3)) - np.float32(0.25)
    if ring < distance:
        distance, material = ring, 2
    return distance, material


@function
def march(ox, oy, oz, dx, dy, dz, close, far):
    t, material = np.float32(0), 0
    for _ in range(200):
        here, material = scene(ox + t * dx, oy + t * dy, oz + t * dz)
        t += here
        if here < close or t > far:
            break
    return t, material


@function
def shadow(x, y, z, lx, ly, lz):
    bright, t = np.float32(1), np.float32(0.05)
    while bright > np.float32(0.01) and t < 6:
        near, _ = scene(x + t * lx, y + t * ly, z + t * lz)
        bright = min(bright, np.float32(12) * near / t)
        t += max(near, np.float32(0.02))
    return max(bright, np.float32(0))


@parallel
def ray_marcher(image, depth, camera_height, camera_distance, zoom, tilt, close, far):
    f, (height, width) = np.float32, depth.shape
    lx, ly, lz = f(0.48), f(0.64), f(0.6)
    for i in nb.prange(height):
        for j in range(width):
            dx, dy = f((j + 0.5 - width / 2) / height), f((height / 2 - i - 0.5) / height + tilt)
            dz = f(-zoom)
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            dx, dy, dz = dx / length, dy / length, dz / length
            t, material = march(f(0), camera_height, camera_distance, dx, dy, dz, close, far)
            depth[i, j] = t
            shade = f(1) - f(0.5) * dy
            r, g, b = f(0.55) * shade, f(0.7) * shade, f(0.9) * shade
            if t < far:
                x, y, z, e = t * dx, camera_height + t * dy, camera_distance + t * dz, f(1e-3)
                nx = scene(x + e, y, z)[0] - scene(x - e, y, z)[0]
                ny = scene(x, y + e, z)[0] - scene(x, y - e, z)[0]
                nz = scene(x, y, z + e)[0] - scene(x, y, z - e)[0]
                length = math.sqrt(nx * nx + ny * ny + nz * nz)
                nx, ny, nz = nx / length, ny / length, nz / length
                r, g, b = f(0.15), f(0.4), f(0.7)
                if material == 0:
                    r, g, b = f(0.7), f(0.66), f(0.6)
                elif material == 1:
                    r, g, b = f(0.85), f(0.25), f(0.15)
                dark = shadow(x + f(0.01) * nx, y + f(0.01) * ny, z + f(0.01) * nz, lx, ly, lz)
                shade = f(0.25) + f(0.85) * max(nx * lx + ny * ly + nz * lz, f(0)) * dark
                r, g, b = r * shade, g * shade, b * shade
            image[i, j, 0] = math.sqrt(min(r, f(1)))
            image[i, j, 1] = math.sqrt(min(g, f(1)))
            image[i, j, 2] = math.sqrt(min(b, f(1)))


@reordering
def nbody(out, positions, masses, softening):
    for i in nb.prange(positions.shape[0]):
        x = y = z = np.float32(0)
        for j in range(positions.shape[0]):
            dx = positions[j, 0] - positions[i, 0]
            dy = positions[j, 1] - positions[i, 1]
            dz = positions[j, 2] - positions[i, 2]
            square = dx * dx + dy * dy + dz * dz + softening
            weight = masses[j] / (square * math.sqrt(square))
            x += weight * dx
            y += weight * dy
            z += weight * dz
        out[i, 0], out[i, 1], out[i, 2] = x, y, z


@parallel
def sph(force, density, start, order, positions, velocities, columns, rows, reach, mass, rest, stiffness, viscosity):
    f = np.float32
    for i in nb.prange(positions.shape[0]):
        px, py, total = positions[i, 0], positions[i, 1], f(0)
        x, y = min(max(int(px / reach), 0), columns - 1), min(max(int(py / reach), 0), rows - 1)
        for row in range(max(y - 1, 0), min(y + 2, rows)):
            for column in range(max(x - 1, 0), min(x + 2, columns)):
                c = row * columns + column
                for k in range(start[c], start[c + 1]):
                    j = order[k]
                    dx, dy = px - positions[j, 0], py - positions[j, 1]
                    near = max(reach * reach - (dx * dx + dy * dy), f(0))
                    total += near * near * near
        density[i] = mass * f(4 / (math.pi * reach**8)) * total
    for i in nb.prange(positions.shape[0]):
        px, py, fx, fy = positions[i, 0], positions[i, 1], f(0), f(0)
        over = max(density[i] - rest, f(0))
        x, y = min(max(int(px / reach), 0), columns - 1), min(max(int(py / reach), 0), rows - 1)
        for row in range(max(y - 1, 0), min(y + 2, rows)):
            for column in range(max(x - 1, 0), min(x + 2, columns)):
                c = row * columns + column
                for k in range(start[c], start[c + 1]):
                    j = order[k]
                    dx, dy = px - positions[j, 0], py - positions[j, 1]
                    square = dx * dx + dy * dy
                    if square > 0 and square < reach * reach:
                        r = math.sqrt(square)
                        weight = mass / (density[j] * f(math.pi * reach**5))
                        pressure = stiffness * (over + max(density[j] - rest, f(0))) / f(2)
                        along = pressure * f(30) * (reach - r) * (reach - r) / r * weight
                        drag = viscosity * f(40) * (reach - r) * weight
                        fx += dx * along + (velocities[j, 0] - velocities[i, 0]) * drag
                        fy += dy * along + (velocities[j, 1] - velocities[i, 1]) * drag
        force[i, 0], force[i, 1] = fx, fy


@nb.njit  # Numba has no atomics on CPUs
def mpm(x, v, c, volume, momentum, mass, n, dt, stiffness, rest_volume, particle_mass, gravity):
    f = np.float32
    dx = f(1) / n
    momentum[:] = 0
    mass[:] = 0
    w = np.zeros((3, 2), np.float32)
    for p in range(x.shape[0]):
        px, py = x[p, 0] * n, x[p, 1] * n
        i, j = int(px - f(0.5)), int(py - f(0.5))
        fx, fy = px - f(i), py - f(j)
        _weights(w, fx, fy)
        stress = -dt * f(4) * stiffness * rest_volume * (volume[p] - f(1)) / (dx * dx)
        a00, a01 = stress + particle_mass * c[p, 0, 0], particle_mass * c[p, 0, 1]
        a10, a11 = particle_mass * c[p, 1, 0], stress + particle_mass * c[p, 1, 1]
        for a in range(3):
            for b in range(3):
                ex, ey = (f(a) - fx) * dx, (f(b) - fy) * dx
                weight = w[a, 0] * w[b, 1]
                momentum[i + a, j + b, 0] += weight * (particle_mass * v[p, 0] + a00 * ex + a01 * ey)
                momentum[i + a, j + b, 1] += weight * (particle_mass * v[p, 1] + a10 * ex + a11 * ey)
                mass[i + a, j + b] += weight * particle_mass
    for i in range(n):
        for j in range(n):
            if mass[i, j] > 0:
                vx, vy = momentum[i, j, 0] / mass[i, j], momentum[i, j, 1] / mass[i, j] - dt * gravity
                if (i < 3 and vx < 0) or (i > n - 3 and vx > 0):
                    vx = f(0)
                if (j < 3 and vy < 0) or (j > n - 3 and vy > 0):
                    vy = f(0)
                momentum[i, j, 0], momentum[i, j, 1] = vx, vy
    for p in range(x.shape[0]):
        px, py = x[p, 0] * n, x[p, 1] * n
        i, j = int(px - f(0.5)), int(py - f(0.5))
        fx, fy = px - f(i), py - f(j)
        _weights(w, fx, fy)
        vx = vy = c00 = c01 = c10 = c11 = f(0)
        for a in range(3):
            for b in range(3):
                ex, ey, weight = f(a) - fx, f(b) - fy, w[a, 0] * w[b, 1]
                gx, gy = momentum[i + a, j + b, 0], momentum[i + a, j + b, 1]
                vx += weight * gx
                vy += weight * gy
                by = f(4) * weight / dx
                c00 += by * gx * ex
                c01 += by * gx * ey
                c10 += by * gy * ex
                c11 += by * gy * ey
        v[p, 0], v[p, 1] = vx, vy
        c[p, 0, 0], c[p, 0, 1], c[p, 1, 0], c[p, 1, 1] = c00, c01, c10, c11
        x[p, 0] += dt * vx
        x[p, 1] += dt * vy
        volume[p] *= f(1) + dt * (c00 + c11)


@function
def _weights(w, fx, fy):
    f = np.float32
    for k, x in enumerate((fx, fy)):
        w[0, k] = f(0.5) * (f(1.5) - x) * (f(1.5) - x)
        w[1, k] = f(0.75) - (x - f(1)) * (x - f(1))
        w[2, k] = f(0.5) * (x - f(0.5)) * (x - f(0.5))


@function
def _meets(t, node, ox, oy, oz, dx, dy, dz):
    ax, ay, az = t[node, 0, 0], t[node, 0, 1], t[node, 0, 2]
    ex, ey, ez = t[node, 1, 0] - ax, t[node, 1, 1] - ay, t[node, 1, 2] - az
    fx, fy, fz = t[node, 2, 0] - ax, t[node, 2, 1] - ay, t[node, 2, 2] - az
    tx, ty, tz = ox - ax, oy - ay, oz - az
    px, py, pz = dy * fz - dz * fy, dz * fx - dx * fz, dx * fy - dy * fx
    qx, qy, qz = ty * ez - tz * ey, tz * ex - tx * ez, tx * ey - ty * ex
    determinant = ex * px + ey * py + ez * pz
    if determinant == 0:
        return np.float32(np.inf)
    u = (tx * px + ty * py + tz * pz) / determinant
    v = (dx * qx + dy * qy + dz * qz) / determinant
    distance = (fx * qx + fy * qy + fz * qz) / determinant
    return distance if u >= 0 and v >= 0 and u + v <= 1 and distance > 0 else np.float32(np.inf)


@parallel
def bvh(hits, distances, low, high, triangles, leaves, origins, directions):
    for i in nb.prange(hits.size):
        hit, nearest = -1, np.float32(np.inf)
        ox, oy, oz = origins[i, 0], origins[i, 1], origins[i, 2]
        dx, dy, dz = directions[i, 0], directions[i, 1], directions[i, 2]
        stack = np.zeros(40, np.int32)
        stack[0], depth = 1, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if low[node, 0] > high[node, 0]:
                continue
            ax, bx = (low[node, 0] - ox) / dx, (high[node, 0] - ox) / dx
            ay, by = (low[node, 1] - oy) / dy, (high[node, 1] - oy) / dy
            az, bz = (low[node, 2] - oz) / dz, (high[node, 2] - oz) / dz
            enter = max(max(min(ax, bx), min(ay, by)), max(min(az, bz), np.float32(0)))
            leave = min(min(max(ax, bx), max(ay, by)), min(max(az, bz), nearest))
            if enter > leave:
                continue
            if node < leaves:
                stack[depth], stack[depth + 1] = 2 * node + 1, 2 * node
                depth += 2
            else:
                distance = _meets(triangles, node - leaves, ox, oy, oz, dx, dy, dz)
                if distance < nearest:
                    hit, nearest = node - leaves, distance
        hits[i], distances[i] = hit, nearest


@parallel
def cloth(new, velocities, positions, neighbours, cell, stiffness, damping, drag, gravity, step):
    f = np.float32
    rows, columns, _ = positions.shape
    for i in nb.prange(rows):
        for j in range(columns):
            tx, ty = -drag * velocities[i, j, 0], -gravity - drag * velocities[i, j, 1]
            tz = -drag * velocities[i, j, 2]
            for k in range(neighbours.shape[0]):
                a, b = neighbours[k]
                rest = cell * math.sqrt(f(a * a + b * b))
                for sign in range(-1, 2, 2):
                    m, n = i + sign * a, j + sign * b
                    if 0 <= m < rows and 0 <= n < columns:
                        dx = positions[m, n, 0] - positions[i, j, 0]
                        dy = positions[m, n, 1] - positions[i, j, 1]
                        dz = positions[m, n, 2] - positions[i, j, 2]
                        length = math.sqrt(dx * dx + dy * dy + dz * dz)
                        dx, dy, dz = dx / length, dy / length, dz / length
                        along = (velocities[m, n, 0] - velocities[i, j, 0]) * dx
                        along += (velocities[m, n, 1] - velocities[i, j, 1]) * dy
                        along += (velocities[m, n, 2] - velocities[i, j, 2]) * dz
                        pull = stiffness * (length / rest - f(1)) * rest + damping * along
                        tx += pull * dx
                        ty += pull * dy
                        tz += pull * dz
            new[i, j, 0] = velocities[i, j, 0] + step * tx
            new[i, j, 1] = velocities[i, j, 1] + step * ty
            new[i, j, 2] = velocities[i, j, 2] + step * tz


@parallel
def lattice_boltzmann(new, old, solid, e, w, opposite, relaxation, speed):
    height, width, _ = old.shape
    for y in nb.prange(height):
        f = np.zeros(9)
        for x in range(width):
            density, ux, uy = 0.0, 0.0, 0.0
            for k in range(9):
                sx, sy = max(min(x - e[k, 0], width - 1), 0), (y - e[k, 1] + height) % height
                f[k] = old[y, x, opposite[k]] if solid[sy, sx] else old[sy, sx, k]
                density += f[k]
            for k in range(9):
                ux += f[k] * e[k, 0] / density
                uy += f[k] * e[k, 1] / density
            if x == 0:
                density, ux, uy = 1.0, speed, 0.0
            for k in range(9):
                along = e[k, 0] * ux + e[k, 1] * uy
                rest = w[k] * density * (1 + 3 * along + 4.5 * along * along - 1.5 * (ux * ux + uy * uy))
                new[y, x, k] = rest if x == 0 else f[k] + relaxation * (rest - f[k])


@function
def _normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


@parallel
def black_scholes(calls, puts, stock, strike, years, rate, volatility):
    for i in nb.prange(calls.size):
        deviation = volatility * math.sqrt(years[i])
        d1 = (math.log(stock[i] / strike[i]) + (rate + volatility**2 / 2) * years[i]) / deviation
        d2 = d1 - deviation
        discounted = strike[i] * math.exp(-rate * years[i])
        calls[i] = stock[i] * _normal_cdf(d1) - discounted * _normal_cdf(d2)
        puts[i] = discounted * _normal_cdf(-d2) - stock[i] * _normal_cdf(-d1)


@parallel
def jacobi(new, old, change):
    largest = 0.0
    for i in nb.prange(1, old.shape[0] - 1):
        for j in range(1, old.shape[1] - 1):
            mean = (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]) / 4
            largest = max(largest, abs(mean - old[i, j]))
            new[i, j] = mean
    change[0] = largest


@nb.njit  # Numba has no atomics on CPUs
def kmeans(labels, means, sums, counts, points, unit):
    for i in range(points.shape[0]):
        nearest, best = 0, np.inf
        for k in range(means.shape[0]):
            dx, dy = points[i, 0] - means[k, 0], points[i, 1] - means[k, 1]
            if dx * dx + dy * dy < best:
                nearest, best = k, dx * dx + dy * dy
        labels[i] = nearest
        counts[nearest] += 1
        sums[nearest, 0] += int(points[i, 0] * unit + 0.5)
        sums[nearest, 1] += int(points[i, 1] * unit + 0.5)
    for k in range(means.shape[0]):
        if counts[k] > 0:
            means[k, 0], means[k, 1] = sums[k, 0] / (unit * counts[k]), sums[k, 1] / (unit * counts[k])
        counts[k] = sums[k, 0] = sums[k, 1] = 0


@parallel
def sparse_product(out, start, columns, values, x, product):
    dot = 0.0
    for i in nb.prange(out.size):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += values[k] * x[columns[k]]
        out[i] = total
        dot += x[i] * total
    product[0] = dot


@reordering
def layer_norm(y, mean, scale, x, weight, bias, epsilon):
    n = np.float32(x.shape[1])
    for i in nb.prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        middle, square = total / n, np.float32(0)
        for j in range(x.shape[1]):
            square += (x[i, j] - middle) * (x[i, j] - middle)
        by = np.float32(1) / math.sqrt(square / n + epsilon)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - middle) * by * weight[j] + bias[j]
        mean[i], scale[i] = middle, by


@function
def _laplacian(a, i, j):
    height, width = a.shape
    up, down = (i if i > 0 else height) - 1, i + 1 if i + 1 < height else 0
    left, right = (j if j > 0 else width) - 1, j + 1 if j + 1 < width else 0
    return a[up, j] + a[down, j] + a[i, left] + a[i, right] - np.float32(4) * a[i, j]


@parallel
def gray_scott(new_u, new_v, u, v, feed, kill, spread_u, spread_v):
    for i in nb.prange(u.shape[0]):
        for j in range(u.shape[1]):
            eaten = u[i, j] * v[i, j] * v[i, j]
            new_u[i, j] = u[i, j] + spread_u * _laplacian(u, np.int64(i), j) - eaten + feed * (np.float32(1) - u[i, j])
            new_v[i, j] = v[i, j] + spread_v * _laplacian(v, np.int64(i), j) + eaten - (feed + kill) * v[i, j]
