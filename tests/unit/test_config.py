"""Settings: how their texts and values are read, and what is said of those that can't be."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyarray import config

GOOD = {
    "PYARRAY_NUM_THREADS": [(" 4 ", 4), (3, 3), (np.int64(2), 2)],
    "PYARRAY_CACHE_MAX_BYTES": [
        ("0", 0),
        ("3k", 3 << 10),
        ("12 M", 12 << 20),
        ("2G", 2 << 30),
        (1 << 40, 1 << 40),
    ],
    "PYARRAY_AUTOTUNE_BUDGET": [("0", 0.0), ("2.5", 2.5), (3, 3.0), (np.float32(0.5), 0.5)],
    "PYARRAY_AUTOTUNE": [("Use", "use")],
    "PYARRAY_FLOAT32_MATMUL_PRECISION": [(" TF32", "tf32")],
    "PYARRAY_CACHE": [("ON", True), ("no", False), (False, False), (1, True), (np.True_, True)],
    "PYARRAY_DEBUG": [("0", False), ("1", True), (True, True)],
    "PYARRAY_DUMP_ARGS": [("3", 3), ("yes", 1), (2, 2), (True, 1), (False, 0)],
    "PYARRAY_CACHE_DIR": [("/tmp/x", Path("/tmp/x")), (Path("/tmp/x"), Path("/tmp/x"))],
    "PYARRAY_WARMED": [("0", False), (False, False), ("/tmp/x", Path("/tmp/x")), (Path("1"), Path("1"))],
    "PYARRAY_DEVICE": [("cuda:1", "cuda:1")],
    "PYARRAY_CC": [("ccache 'my cc'", "ccache 'my cc'")],
    "PYARRAY_CFLAGS": [("-O2 -DX='1 + 1'", "-O2 -DX='1 + 1'")],
}
BAD = {
    "PYARRAY_NUM_THREADS": ("abc", "0", "-1", "1.5", 0, True, 2.0, b"4", 1 << 31, "1" + 20 * "0"),
    "PYARRAY_POOL_LIMIT": ("12X", "-1", "M", "1.5G", -1, 1e9, 1 << 63, "8589934592G"),
    "PYARRAY_AUTOTUNE_BUDGET": ("soon", "-1", "nan", True, b"3", 1j, [3]),
    "PYARRAY_AUTOTUNE": ("maybe", "bogus", True, 1),
    "PYARRAY_FLOAT32_MATMUL_PRECISION": ("high", "tf", 32, True),
    "PYARRAY_CACHE": ("maybe", 2, 1.0, "four"),
    "PYARRAY_DUMP_ARGS": ("4", "maybe", 7, -1, 2.0),
    "PYARRAY_CACHE_DIR": (3, True, b"/tmp", "a\0b"),
    "PYARRAY_WARMED": ("1", True, 3, b"x"),
    "PYARRAY_DEVICE": ("cuda:", "the first", 0, "cpu "),
    "PYARRAY_CC": ("gcc 'x", 3, "\0", "'"),
    "PYARRAY_CFLAGS": ('-DX="', ["-O2"], 2),
}


def read(name, value, monkeypatch=None):
    """What a setting is with the value: the environment's where it is a text that can be there."""
    if monkeypatch is None:
        config.set(name, value)
    else:
        monkeypatch.setenv(name, value)
    return config.get(name)


@pytest.fixture(autouse=True)
def restored():
    before = dict(config.overrides)
    yield
    for name in {*config.overrides, *before}:
        config.set(name, before.get(name))


@pytest.mark.parametrize(("name", "given", "value"), [(n, *row) for n, rows in GOOD.items() for row in rows])
def test_values(name, given, value, monkeypatch):
    found = [read(name, given)]
    config.set(name, None)
    if isinstance(given, str):
        found.append(read(name, given, monkeypatch))
    for each in found:
        assert each == value
        assert type(each) is type(value)


@pytest.mark.parametrize(("name", "given"), [(n, given) for n, values in BAD.items() for given in values])
def test_values_that_cannot_be(name, given, monkeypatch):
    before = config.get(name)
    said = []
    with pytest.raises(ValueError, match="expected") as caught:
        config.set(name, given)
    said.append(str(caught.value))
    assert config.get(name) == before
    if isinstance(given, str) and "\0" not in given:
        config.set(name, None)
        with pytest.raises(ValueError, match="expected") as caught:
            read(name, given, monkeypatch)
        said.append(str(caught.value))
    assert set(said) == {f"{name}={given!r}: expected {config.SETTINGS[name].kind.expected}"}


def test_every_kind_of_value_is_in_the_tables():
    for table in (GOOD, BAD):
        assert {config.SETTINGS[name].kind for name in table} == {s.kind for s in config.SETTINGS.values()}


ANY = (
    st.text(st.characters(exclude_characters="\0", codec="utf-8"))
    | st.sampled_from(["0", "1", "on", "12M", "search", "cpu", "cuda:0", "/tmp", "-O2", " ", "'", "1e400", "١"])
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.binary()
    | st.lists(st.integers())
    | st.builds(Path, st.sampled_from(["/tmp", ""]))
)
TYPES = {
    "flag": bool, "integer ≥ 1": int, "bytes": int, "0, 1, 2 or 3": int, "seconds, 0 or more": float,
    "search, use, force or off": str, "path": Path, "path, or 0": (Path, bool), "text": str,
}  # fmt: skip


@given(st.sampled_from(list(config.SETTINGS)), ANY)
@example("PYARRAY_NUM_THREADS", "9" * 5000)
@example("PYARRAY_AUTOTUNE_BUDGET", 10**400)
def test_a_value_is_of_its_kind_or_refused_wherever_it_comes_from(name, given):
    row = config.SETTINGS[name]
    found = outcome(lambda: read(name, given))
    if isinstance(found, ValueError):
        assert str(found) == f"{name}={given!r}: expected {row.kind.expected}"
    else:
        assert found == row.default or isinstance(found, TYPES[row.kind.words])
    config.set(name, None)
    if isinstance(given, str):
        with pytest.MonkeyPatch.context() as patch:
            assert repr(outcome(lambda: read(name, given, patch))) == repr(found)


def outcome(function):
    """What it gives, or the `ValueError` that it raises."""
    try:
        return function()
    except ValueError as error:
        return error


@pytest.mark.parametrize("name", list(config.SETTINGS))
@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_text_is_none(name, text, monkeypatch):
    monkeypatch.setenv(name, text)
    before = config.overrides.pop(name, None)
    try:
        assert config.get(name) == config.SETTINGS[name].default
        assert read(name, text) == config.SETTINGS[name].default
    finally:
        if before is not None:
            config.overrides[name] = before


def test_a_name_that_is_not_there():
    with pytest.raises(KeyError, match=r"no setting 'PYARRAY_DEBIG'; there are .*PYARRAY_DEBUG"):
        config.set("PYARRAY_DEBIG", True)


@pytest.mark.parametrize(("name", "setting"), [("debug", "PYARRAY_DEBUG"), ("verbose", "PYARRAY_…")])
def test_a_setting_is_no_attribute(name, setting):
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; .* pyarray.config.set\('{setting}', value\)"):
        setattr(config, name, True)
    assert not hasattr(config, name)
