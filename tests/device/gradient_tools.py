"""Compares adjoints with central differences of the kernel itself."""

import numpy as np
from kernel_tools import on

import pyarray as pa


def differences(kernel, args, cotangents, wanted, step):
    """By name: the derivative of the sum of cotangents times results, by central differences on the CPU."""
    names = list(args)

    def total(changed):
        there = {n: pa.asarray(a.copy()) if isinstance(a, np.ndarray) else a for n, a in changed.items()}
        kernel(*(there[n] for n in names))
        return sum(float((pa.asnumpy(there[n]) * c).sum()) for n, c in cotangents.items())

    found = {}
    for name in wanted:
        value = args[name]
        found[name] = slopes = np.zeros(np.shape(value))
        for at in np.ndindex(np.shape(value)):
            ends = []
            for sign in (1, -1):
                moved = np.array(value, float)
                moved[at] += sign * step
                ends.append(total({**args, name: moved if isinstance(value, np.ndarray) else float(moved)}))
            slopes[at] = (ends[0] - ends[1]) / (2 * step)
    return found


def adjoint(kernel, device, args, cotangents, wanted):
    """Gradients by name after a launch of the kernel and one of its adjoint, on copies."""
    there = {n: on(device, a.copy()) if isinstance(a, np.ndarray) else a for n, a in args.items()}
    kernel(*there.values())
    grads = {n: on(device, c.copy()) for n, c in cotangents.items()}
    for name in wanted:
        grads.setdefault(name, on(device, np.zeros(np.shape(args[name]))))
    kernel.grad(*there.values(), **{f"grad_{n}": g for n, g in grads.items()})
    return {n: pa.asnumpy(grads[n]) for n in wanted}


def agree(kernel, device, args, results, wanted, step=1e-6, rtol=1e-5):
    """Assert that the adjoint is what differences say, in release and in debug mode. `args` by name."""
    rng = np.random.default_rng(0)
    cotangents = {n: rng.standard_normal(args[n].shape) for n in results}
    expected = differences(kernel, args, cotangents, wanted, step)
    for checked in (False, True):
        with pa.debug(checked):
            got = adjoint(kernel, device, args, cotangents, wanted)
        for name in wanted:
            np.testing.assert_allclose(got[name], expected[name], rtol=rtol, atol=1e-6, err_msg=name)
