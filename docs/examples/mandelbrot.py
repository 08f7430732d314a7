"""The Mandelbrot set: how many steps of z² + c it takes to leave a circle of radius 2, for each c of the plane.

Complex numbers are numbers of the kernel language. The example of Numba's CUDA tutorials.

    python docs/examples/mandelbrot.py --picture mandelbrot.png
"""

import argparse

import numpy as np

import pyarray as pa

WHOLE = (-2.2, 0.8, -1.25, 1.25)  # left, right, bottom, top
VALLEY = (-0.7487, -0.7437, 0.1140, 0.1180)


@pa.func
def escape_time(c, limit):
    z = c
    for step in range(limit):
        if z.real * z.real + z.imag * z.imag > 4:
            return step
        z = z * z + c
    return limit


@pa.kernel
def mandelbrot(times, left: float, top: float, pixel: float, limit: int):
    height, width = times.shape
    for i, j in pa.ndrange(height, width):
        times[i, j] = escape_time(left + j * pixel + 1j * (top - i * pixel), limit)


def picture(height, width, window, limit, device=None):
    left, right, _, top = window
    times = pa.empty((height, width), dtype=pa.int32, device=device)
    mandelbrot(times, left, top, (right - left) / width, limit)
    return pa.asnumpy(times)


def reference(height, width, window, limit):
    left, right, _, top = window
    pixel = (right - left) / width
    i, j = np.mgrid[:height, :width]
    c = left + j * pixel + 1j * (top - i * pixel)
    z, times = c.copy(), np.full(c.shape, limit)
    for step in range(limit):
        inside = times == limit
        gone = inside & (z.real**2 + z.imag**2 > 4)
        times[gone] = step
        z = np.where(inside & ~gone, z * z + c, 0)
    return times


def check(device=None):
    for window in (WHOLE, VALLEY):
        times = picture(40, 60, window, 200, device)
        same = times == reference(40, 60, window, 200)
        assert np.mean(same) > 0.99, "rounding may move a point at the edge, and no more"


def draw(path, device=None):
    from matplotlib import pyplot as plt

    times = picture(240, 300, VALLEY, 1000, device)
    plt.imsave(path, np.log(times), cmap="twilight_shifted")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("escape times are those of NumPy")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
