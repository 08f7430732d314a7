"""Functions defined from source text keep their source, also when other threads define one of the same name."""

import threading

import numpy as np

import pyarray as pa
from pyarray.jit.kernel import from_text
from pyarray.lang.parse import function_from_text, source_of

TEXT = "def scaled(out, x):\n    for i in range(out.size):\n        out[i] = x[i] * {}\n"


def test_a_function_keeps_its_text():
    texts = [TEXT.format(k) for k in range(3)]
    functions = [function_from_text("scaled", text, {}) for text in texts]
    assert ["".join(source_of(f).lines) for f in functions] == texts


def test_threads_define_kernels_of_one_name(device):
    """A kernel that took another one's text would give wrong numbers."""
    wrong, start = [], threading.Barrier(4)

    def work(first):
        x = pa.asarray(np.arange(5.0), device=device)
        out = pa.empty_like(x)
        start.wait(60)
        for k in range(first, first + 8):
            kernel = from_text("scaled", TEXT.format(k), {})
            kernel(out, x)
            if out.tolist() != [float(k * i) for i in range(5)]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(8 * n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
    assert not wrong
