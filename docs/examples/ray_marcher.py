"""A scene of signed distances, drawn by sphere tracing; rays, hits and the camera are dataclasses.

The distance to the nearest surface is a step that no ray can take too far (Hart, "Sphere tracing", The Visual
Computer 12, 1996). The shadow's penumbra is Inigo Quilez's estimate (iquilezles.org/articles/rmshadows).

    python docs/examples/ray_marcher.py --picture ray_marcher.png
"""

import argparse
from dataclasses import dataclass

import numpy as np

import pyarray as pa

CLOSE, FAR = 1e-3, 20.0


@dataclass
class Camera:
    height: float = 1.2
    distance: float = 4.0
    zoom: float = 1.6
    tilt: float = -0.15


@dataclass
class Hit:
    distance: pa.float32
    material: pa.int32  # 0: floor, 1: ball, 2: ring


@pa.func
def vector(x, y, z):
    return pa.array([x, y, z], dtype=pa.float32)


@pa.func
def scene(p):
    """The distance from a point to the nearest surface, and whose it is."""
    x, y, z = p
    nearest = Hit(y, 0)
    ball = pa.sqrt((x + 0.8) ** 2 + (y - 0.7) ** 2 + z**2) - 0.7
    if ball < nearest.distance:
        nearest = Hit(ball, 1)
    around = pa.sqrt((x - 0.9) ** 2 + z**2) - 0.6
    ring = pa.sqrt(around**2 + (y - 0.3) ** 2) - 0.25
    if ring < nearest.distance:
        nearest = Hit(ring, 2)
    return nearest


@pa.func
def march(origin, direction):
    """The first hit along a ray; beyond FAR there is none."""
    hit = Hit(0.0, 0)
    for _ in range(200):
        here = scene(origin + hit.distance * direction)
        hit = Hit(hit.distance + here.distance, here.material)
        if here.distance < CLOSE or hit.distance > FAR:
            break
    return hit


@pa.func
def normal(p):
    """The direction in which the distance grows."""
    gradient = pa.zeros(3, dtype=pa.float32)
    for k in range(3):
        step = pa.zeros(3, dtype=pa.float32)
        step[k] = 1e-3
        gradient[k] = scene(p + step).distance - scene(p - step).distance
    return gradient / pa.linalg.norm(gradient)


@pa.func
def shadow(p, light):
    """How much of the light arrives: a ray that passes close to something gets less."""
    bright, t = pa.float32(1.0), pa.float32(0.05)
    while bright > 0.01 and t < 6:
        near = scene(p + t * light).distance
        bright = min(bright, 12 * near / t)
        t += max(near, 0.02)
    return max(bright, 0.0)


@pa.kernel
def render(image: pa.ndarray[pa.float32, (None, None, 3)], depth: pa.ndarray[pa.float32, 2], camera: Camera):
    height, width = depth.shape
    for i, j in pa.ndrange(height, width):
        origin = vector(0, camera.height, camera.distance)
        direction = vector((j + 0.5 - width / 2) / height, (height / 2 - i - 0.5) / height + camera.tilt, -camera.zoom)
        direction /= pa.linalg.norm(direction)
        light = vector(0.48, 0.64, 0.6)
        hit = march(origin, direction)
        depth[i, j] = hit.distance
        color = vector(0.55, 0.7, 0.9) * (1 - 0.5 * direction[1])
        if hit.distance < FAR:
            p = origin + hit.distance * direction
            n = normal(p)
            match hit.material:
                case 0:
                    color = vector(0.7, 0.66, 0.6)
                case 1:
                    color = vector(0.85, 0.25, 0.15)
                case _:
                    color = vector(0.15, 0.4, 0.7)
            color *= 0.25 + 0.85 * max(n @ light, 0.0) * shadow(p + 0.01 * n, light)
        image[i, j] = pa.sqrt(pa.minimum(color, 1.0))  # about what a screen expects


def picture(height, width, device=None):
    image = pa.zeros((height, width, 3), dtype=pa.float32, device=device)
    depth = pa.zeros((height, width), dtype=pa.float32, device=device)
    render(image, depth, Camera())
    return pa.asnumpy(image), pa.asnumpy(depth)


def reference(height, width):
    """By formulas: where each pixel's ray meets floor or ball, FAR where neither; and the rays."""
    camera = Camera()
    i, j = np.mgrid[:height, :width] + 0.5
    up = (height / 2 - i) / height + camera.tilt
    direction = np.stack([(j - width / 2) / height, up, np.full(i.shape, -camera.zoom)], axis=-1)
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        floor = np.where(direction[..., 1] < 0, -camera.height / direction[..., 1], FAR)
    from_ball = np.array([0.8, camera.height - 0.7, camera.distance])
    along = direction @ from_ball
    square = along**2 - from_ball @ from_ball + 0.7**2
    ball = np.where(square > 0, -along - np.sqrt(np.maximum(square, 0)), FAR)
    return np.minimum(floor, ball), np.array([0, camera.height, camera.distance]), direction


def check(device=None):
    image, depth = picture(48, 72, device)
    expected, origin, direction = reference(48, 72)
    assert np.all((image >= 0) & (image <= 1))
    x, y, z = np.moveaxis(origin + depth[..., None] * direction, -1, 0)
    on_ring = abs(np.hypot(np.hypot(x - 0.9, z) - 0.6, y - 0.3) - 0.25) < 0.01
    same = abs(depth - expected) < 0.01 * expected
    beyond = (depth > FAR) & (expected >= FAR)
    grazing = abs(np.sqrt((x + 0.8) ** 2 + (y - 0.7) ** 2 + z**2) - 0.7) < 0.01  # stops a little early
    assert np.all(same | beyond | on_ring | grazing)
    assert np.mean(same) > 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("rays meet floor and ball where formulas say")
    if options.picture:
        from matplotlib import pyplot as plt

        plt.imsave(options.picture, picture(240, 360, options.device)[0])


if __name__ == "__main__":
    main()
