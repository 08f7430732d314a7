"""Mean and standard deviation of a file that no device has memory for: parts go to all devices in turn.

Run it: python docs/examples/out_of_core.py [MiB of the file, 256 unless given] [MiB of a part, 32]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import pyarray as pa


def moments(values, devices, count):
    """Mean and standard deviation of a 1-D NumPy array, of which parts of `count` elements are on `devices`.

    The host reads the next part while the devices work on those before. Parts are joined by the formula of
    Chan, Golub and LeVeque (1979).
    """
    parts = []
    for k, start in enumerate(range(0, len(values), count)):
        part = pa.asarray(values[start : start + count], device=devices[k % len(devices)])
        parts.append((part.size, pa.mean(part), pa.var(part)))  # what they are is asked for at the end
        del part  # its memory is for the device's next one
    total, mean, square = 0, 0.0, 0.0
    for size, each, spread in parts:
        apart = float(each) - mean
        square += float(spread) * size + apart * apart * total * size / (total + size)
        total += size
        mean += apart * size / total
    return mean, (square / total) ** 0.5


def gpus():
    """All NVIDIA GPUs, else the default device."""
    devices: list[pa.Device] = []
    try:
        while True:
            devices.append(pa.get_device(f"cuda:{len(devices)}"))
    except pa.DeviceError:
        return devices or [pa.get_default_device()]


def main():
    size, part = (int(x) << 18 for x in [*sys.argv[1:], "256", "32"][:2])  # elements in as many MiB
    devices, rng = gpus(), np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values"
        values = np.memmap(path, np.float32, "w+", shape=(size,))
        for start in range(0, size, part):
            values[start : start + part] = rng.normal(3, 2, min(part, size - start))
        began = time.perf_counter()
        mean, deviation = moments(values, devices, part)
        seconds = time.perf_counter() - began
        where = ", ".join(map(str, devices))
        print(f"{size >> 18} MiB in parts of {part >> 18} MiB on {where}: {seconds:.2f} s")
        print(f"mean {mean:.4f}, standard deviation {deviation:.4f}")
        for device in devices:
            peak = pa.get_default_memory_pool(device).peak_bytes()
            print(f"{device}: at most {peak >> 20} MiB of memory")
    assert abs(mean - 3) < 1e-2
    assert abs(deviation - 2) < 1e-2


if __name__ == "__main__":
    main()
