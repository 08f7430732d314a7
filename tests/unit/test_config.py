"""Settings: how their texts are read, and what is said of texts that can't be."""

import pytest

from pyarray import config

GOOD = {
    "PYARRAY_NUM_THREADS": [(" 4 ", 4)],
    "PYARRAY_CACHE_MAX_BYTES": [("0", 0), ("3k", 3 << 10), ("12 M", 12 << 20), ("2G", 2 << 30)],
    "PYARRAY_AUTOTUNE_BUDGET": [("0", 0.0), ("2.5", 2.5)],
    "PYARRAY_AUTOTUNE": [("Use", "use")],
    "PYARRAY_CACHE": [("ON", True), ("no", False)],
    "PYARRAY_DUMP_ARGS": [("3", 3), ("yes", 1)],
}
BAD = {
    "PYARRAY_NUM_THREADS": ("abc", "0", "-1", "1.5"),
    "PYARRAY_POOL_LIMIT": ("12X", "-1", "M", "1.5G"),
    "PYARRAY_AUTOTUNE_BUDGET": ("soon", "-1", "nan"),
    "PYARRAY_AUTOTUNE": ("maybe",),
    "PYARRAY_CACHE": ("maybe",),
    "PYARRAY_DUMP_ARGS": ("4", "maybe"),
}


@pytest.mark.parametrize(("name", "text", "value"), [(n, *row) for n, rows in GOOD.items() for row in rows])
def test_texts(name, text, value, monkeypatch):
    monkeypatch.setenv(name, text)
    assert config.get(name) == value


@pytest.mark.parametrize(("name", "text"), [(n, text) for n, texts in BAD.items() for text in texts])
def test_texts_that_cannot_be_read(name, text, monkeypatch):
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match="expected") as caught:
        config.get(name)
    said = str(caught.value)
    assert said.startswith(f"{name}={text!r}: expected ")
    assert "invalid literal" not in said
    assert "could not convert" not in said


@pytest.mark.parametrize("name", list(config.SETTINGS))
@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_text_is_none(name, text, monkeypatch):
    monkeypatch.setenv(name, text)
    before = config._overrides.pop(name, None)
    try:
        assert config.get(name) == config.SETTINGS[name].default
    finally:
        if before is not None:
            config._overrides[name] = before


def test_a_name_that_is_not_there():
    with pytest.raises(KeyError, match=r"no setting 'PYARRAY_DEBIG'; there are .*PYARRAY_DEBUG"):
        config.set("PYARRAY_DEBIG", True)
