"""What the package has that is public and callable, for the tests of types and of documentation."""

import inspect
import types

import pyarray as pa

NAMESPACES = (pa, pa.linalg, pa.fft, pa.nn, pa.random, pa.special, pa.quaternion, pa.lib.stride_tricks, pa.testing)


def is_ours(thing):
    own = getattr(thing, "__module__", None) or type(thing).__module__
    return own.partition(".")[0] == "pyarray" and not isinstance(thing, types.ModuleType)


def members(path, kind):
    """The methods of a class, those of its bases too."""
    for name, found in inspect.getmembers(kind):
        if not name.startswith("_") and inspect.isroutine(found) and is_ours(found):
            yield f"{path}.{name}", found


def callables():
    """(path, callable) of each public function and method, each once."""
    seen = set()
    for space in NAMESPACES:
        for name in sorted(getattr(space, "__all__", dir(space))):
            found = getattr(space, name)
            if name.startswith("_") or not is_ours(found) or not callable(found):
                continue
            path = f"{space.__name__}.{name}"
            for where, one in members(path, found) if isinstance(found, type) else [(path, found)]:
                if id(one) not in seen:
                    seen.add(id(one))
                    yield where, one
