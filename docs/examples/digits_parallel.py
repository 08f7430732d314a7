"""The network of digits.py, learnt by several processes: each takes its part of every batch, and torch adds
up the gradients, in the memory of our array.

With as many NVIDIA GPUs as processes each has one and NCCL adds; else all are on the CPU and gloo does.
Run it: python docs/examples/digits_parallel.py [processes, 2 unless given]
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import digits
import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.multiprocessing.spawn import spawn

import pyarray as pa

COUNT = 64 * digits.HIDDEN + digits.HIDDEN + digits.HIDDEN * digits.CLASSES + digits.CLASSES


def zeros():
    return pa.zeros(COUNT, dtype=pa.float32)


def learn(x, labels, rank, world):
    """The parameters after all epochs, and the mean loss of the last one."""
    rng = np.random.default_rng(0)  # the same numbers in all processes
    net, grad, mean, square = digits.Network(zeros()), digits.Network(zeros()), zeros(), zeros()
    for weights in (net.w1, net.w2):
        values = rng.normal(0, np.sqrt(2 / weights.shape[0]), weights.shape)
        weights[...] = values.astype(np.float32)
    shared = torch.from_dlpack(grad.flat)  # the same memory
    step, total = 0, pa.zeros(1, dtype=pa.float32)
    for _ in range(digits.EPOCHS):
        total[...] = 0
        order = pa.asarray(rng.permutation(x.shape[0]))
        for start in range(0, x.shape[0], digits.BATCH):
            batch = order[start : start + digits.BATCH]
            own = batch[rank::world]
            images = x[own]
            hidden, logits = net.forward(images)
            loss = pa.empty(len(own), dtype=pa.float32)
            digits.cross_entropy(logits, labels[own], loss)  # logits now hold the gradient of the mean
            net.backward(images, hidden, logits, grad)
            grad.flat *= len(own) / len(batch)  # parts may differ in length
            if world > 1:
                dist.all_reduce(shared)
            step += 1
            digits.adam(net.flat, grad.flat, mean, square, 0.003, step)
            total += pa.sum(loss)
    if world > 1:
        dist.all_reduce(torch.from_dlpack(total))
    return net, float(total[0]) / x.shape[0]


def work(rank, world, meeting, backend):
    if backend == "nccl":
        torch.cuda.set_device(rank)
        pa.set_default_device(f"cuda:{rank}")
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=world)
    data: Any = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    images = pa.asarray((data.data[order] / 16).astype(np.float32))
    labels = pa.asarray(data.target[order].astype(np.int64))
    x, y, test_x, test_y = images[360:], labels[360:], images[:360], labels[:360]

    began = time.perf_counter()
    net, loss = learn(x, y, rank, world)
    seconds = time.perf_counter() - began
    print(f"process {rank} of {world} on {net.flat.device}, {backend}: loss {loss:.4f} after {seconds:.1f} s")
    first = torch.from_dlpack(net.flat.copy())
    dist.broadcast(first, src=0)
    assert bool(pa.all(pa.from_dlpack(first) == net.flat)), "the processes have different parameters"
    if rank == 0:
        right = float(pa.mean(pa.astype(pa.argmax(net.forward(test_x)[1], axis=1) == test_y, pa.float64)))
        alone, loss_alone = learn(x, y, 0, 1)
        apart = float(pa.max(pa.abs(alone.flat - net.flat)))
        print(f"held-out accuracy {100 * right:.1f} %; all processes have the same parameters")
        print(f"one process alone: loss {loss_alone:.4f}, parameters differ by at most {apart:.1e}")
        assert right >= 0.95
        assert abs(loss - loss_alone) < 1e-3
    dist.destroy_process_group()


def main():
    world = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    backend = "nccl" if torch.cuda.device_count() >= world else "gloo"
    with tempfile.TemporaryDirectory() as folder:
        spawn(work, args=(world, str(Path(folder) / "meeting"), backend), nprocs=world)


if __name__ == "__main__":
    main()
