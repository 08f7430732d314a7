"""The programs of docs/gallery.md compute what their NumPy references do, on every device."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
PROGRAMS = {
    path.stem: path
    for path in sorted((ROOT / "docs" / "examples").glob("*.py"))
    if "\ndef check(" in path.read_text(encoding="utf-8")
}


def load(name):
    """The example as a module that was imported, which dataclasses look for."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", PROGRAMS[name])
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_examples(device, name):
    load(name).check(device)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gallery_has_it(name):
    text, picture = PROGRAMS[name].read_text(encoding="utf-8"), PROGRAMS[name].with_suffix(".png")
    assert f"(examples/{name}.py)" in GALLERY
    assert picture.exists() == ("--picture" in text) == (f"(examples/{name}.png)" in GALLERY)
    assert not picture.exists() or picture.stat().st_size <= 30_000, "python docs/make_gallery.py draws it smaller"


def test_the_gallery_has_no_more():
    assert set(re.findall(r"\(examples/(\w+)\.py\)", GALLERY)) == PROGRAMS.keys()
