"""Handwritten digits, end to end: a small network whose parameters all live in one flat array.

Weights and biases are views of that array, so that the optimizer is one kernel over one run of memory, and
torch reads the very same memory. Run it with `make demo`, or: python docs/examples/digits.py [picture.png]
"""

import sys
import time
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

import pyarray as pa

Run = pa.BufferView[pa.float32]
HIDDEN, CLASSES, EPOCHS, BATCH = 64, 10, 12, 32


@pa.func
def softmax_term(row, j, top):
    return pa.exp(row[j] - top)


@pa.kernel
def cross_entropy(logits: pa.ndarray[pa.float32, 2], labels: pa.BufferView[pa.int64], loss: pa.BufferView[pa.float32]):
    """Replace each row of logits by the gradient of its loss, and write the loss."""
    for i in range(logits.shape[0]):
        row = logits[i]  # a view, inside the kernel
        top = row[0]
        for j in range(1, len(row)):
            top = max(top, row[j])
        total = 0.0
        for j in range(len(row)):
            total += softmax_term(row, j, top)
        loss[i] = pa.log(total) + top - row[labels[i]]
        for j in range(len(row)):
            hit = 1.0 if j == labels[i] else 0.0
            row[j] = (softmax_term(row, j, top) / total - hit) / logits.shape[0]


@pa.kernel
def adam(p: Run, grad: Run, mean: Run, square: Run, rate: float, step: int):
    """One step of Adam (Kingma and Ba, 2015) on any run of parameters."""
    for i in range(p.size):
        mean[i] = 0.9 * mean[i] + 0.1 * grad[i]
        square[i] = 0.999 * square[i] + 0.001 * grad[i] ** 2
        p[i] -= rate * (mean[i] / (1 - 0.9**step)) / (pa.sqrt(square[i] / (1 - 0.999**step)) + 1e-8)


@pa.kernel
def shift(v: pa.BufferView[pa.float32]):
    for i in range(v.size):
        v[i] = v[i + 1]  # one too far


class Network:
    """Layers as views of `flat`: the same code lays out parameters and gradients."""

    w1: pa.ndarray
    b1: pa.ndarray
    w2: pa.ndarray
    b2: pa.ndarray

    def __init__(self, flat):
        sizes = [("w1", (64, HIDDEN)), ("b1", (HIDDEN,)), ("w2", (HIDDEN, CLASSES)), ("b2", (CLASSES,))]
        self.flat, offset = flat, 0
        for name, shape in sizes:
            view = flat.subview(offset, int(np.prod(shape)))
            setattr(self, name, view.reshape(shape) if len(shape) > 1 else view)
            offset += view.size

    def forward(self, x):
        hidden = pa.maximum(x @ self.w1 + self.b1, 0.0)
        return hidden, hidden @ self.w2 + self.b2

    def backward(self, x, hidden, slope, into):
        """Gradients of the loss into the views of another network; `slope` is the gradient at the logits."""
        pa.matmul(hidden.T, slope, out=into.w2)
        pa.sum(slope, axis=0, out=into.b2)
        inner = (slope @ self.w2.T) * (hidden > 0)
        pa.matmul(x.T, inner, out=into.w1)
        pa.sum(inner, axis=0, out=into.b1)


def train(x, labels, test_x, test_labels, rng):
    count = 64 * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES
    net, grad = Network(pa.zeros(count, dtype=pa.float32)), Network(pa.zeros(count, dtype=pa.float32))
    mean, square = pa.zeros(count, dtype=pa.float32), pa.zeros(count, dtype=pa.float32)
    for weights in (net.w1, net.w2):
        weights[...] = rng.normal(0, np.sqrt(2 / weights.shape[0]), weights.shape).astype(np.float32)
    curve, step = [], 0
    for epoch in range(1, EPOCHS + 1):
        began, total = time.perf_counter(), 0.0
        order = pa.asarray(rng.permutation(x.shape[0]))
        for start in range(0, x.shape[0], BATCH):
            pick = order[start : start + BATCH]
            batch, wanted = x[pick], labels[pick]
            hidden, logits = net.forward(batch)
            loss = pa.empty(len(pick), dtype=pa.float32)
            cross_entropy(logits, wanted, loss)  # logits now hold the gradient
            net.backward(batch, hidden, logits, grad)
            step += 1
            adam(net.flat, grad.flat, mean, square, 0.003, step)
            total += float(pa.sum(loss))
        right = float(pa.mean(pa.astype(pa.argmax(net.forward(test_x)[1], axis=1) == test_labels, pa.float64)))
        curve.append((total / x.shape[0], right))
        seconds = time.perf_counter() - began
        print(f"epoch {epoch:2d}  loss {curve[-1][0]:.4f}  held-out {100 * right:.1f} %  {seconds:.2f} s")
    return net, curve


def check_with_torch(net, test_x):
    """torch evaluates the same memory."""
    flat, w1, b1, w2, b2, x = map(torch.from_dlpack, (net.flat, net.w1, net.b1, net.w2, net.b2, test_x))
    assert w1.data_ptr() == flat.data_ptr(), "a copy was made"
    logits = torch.relu(x @ w1 + b1) @ w2 + b2
    worst = float(pa.max(pa.abs(pa.from_dlpack(logits) - net.forward(test_x)[1])))
    print(f"torch on the same memory: logits differ by at most {worst:.1e}")
    assert worst < 1e-3


def draw(path, curve, net, test_x, test_labels):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(9, 4), layout="constrained")
    columns = figure.add_gridspec(1, 2, width_ratios=(1, 1.2))
    left, right = figure.add_subfigure(columns[0]), figure.add_subfigure(columns[1])
    axes = left.subplots()
    axes.plot(range(1, len(curve) + 1), [c[0] for c in curve], label="training loss")
    axes.plot(range(1, len(curve) + 1), [c[1] for c in curve], label="held-out accuracy")
    axes.set(xlabel="epoch", ylim=(0, None))
    axes.legend()
    guesses = pa.argmax(net.forward(test_x)[1], axis=1)
    for k, cell in enumerate(right.subplots(3, 6).flat):
        cell.imshow(pa.asnumpy(test_x[k]).reshape(8, 8), cmap="gray_r")
        wrong = int(guesses[k]) != int(test_labels[k])
        cell.set_title(str(int(guesses[k])), fontsize=10, color="red" if wrong else "black")
        cell.axis("off")
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def main():
    began = time.perf_counter()
    digits: Any = load_digits()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(digits.target))
    images = pa.asarray((digits.data[order] / 16).astype(np.float32))
    labels = pa.asarray(digits.target[order].astype(np.int64))
    held_out = 360
    x, y, test_x, test_y = images[held_out:], labels[held_out:], images[:held_out], labels[:held_out]
    print(f"{x.shape[0]} digits to learn from, {held_out} held out; device {images.device}")

    net, curve = train(x, y, test_x, test_y, rng)
    print(f"held-out accuracy {100 * curve[-1][1]:.1f} % after {time.perf_counter() - began:.1f} s")
    check_with_torch(net, test_x)
    draw(sys.argv[1] if len(sys.argv) > 1 else "digits.png", curve, net, test_x, test_y)

    print("\nAnd a mistake on purpose, in debug mode:\n")
    try:
        with pa.debug():
            shift(net.b1)
    except pa.BoundsError as error:
        print(f"pyarray.BoundsError: {error}")
    assert curve[-1][1] >= 0.95


if __name__ == "__main__":
    main()
