"""A replay runs what this user recorded, and nothing that somebody wrote into the files."""

import copy
import json

import numpy as np
import pytest
from dump_tools import run_python
from kernel_tools import on

import pyarray as pa


@pa.kernel
def scale(out, v, factor: pa.float32):
    for i in range(out.size):
        out[i] = v[i] * factor


@pytest.fixture
def recorded(tmp_path):
    """A dump of one launch, its manifest, and a function that writes another one."""
    out, v = pa.zeros(5, dtype=pa.float32), pa.arange(9, dtype=pa.float32)[::-2]
    with pa.dump(tmp_path / "dump"):
        scale(out, v, 0.5)
    manifest = tmp_path / "dump" / "manifest.json"

    def changed(data):
        manifest.write_text(json.dumps(data))
        (launch,) = pa.load_dump(tmp_path / "dump")
        return launch

    return json.loads(manifest.read_text()), changed


def test_a_program_that_was_changed_is_not_compiled(recorded, tmp_path):
    data, changed = recorded
    (program,) = data["programs"]
    evil = f'__attribute__((constructor)) void x(void) {{ creat("{tmp_path}/ran", 0600); }}\n'
    evil = f"#include <fcntl.h>\n{evil}{program['text']}"
    for change in ({"text": evil}, {"flags": ["-wrapper", f"touch,{tmp_path}/ran"]}):
        launch = changed(data | {"programs": [program | change]})
        with pytest.raises(ValueError, match=r"launch 0 of 'scale' can't be replayed: your key") as caught:
            launch.replay()
        assert "dump.key) hasn't signed it, or it was changed since" in str(caught.value)
        assert "if you trust all who could write it: launch.replay(trusted=True)" in str(caught.value)
    assert not (tmp_path / "ran").exists()


def leaves(data, path=()):
    """Where numbers and texts are."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from leaves(value, (*path, key)) if isinstance(value, (dict, list)) else [(*path, key)]


def test_whatever_is_changed_it_is_refused_or_the_same(recorded, tmp_path):
    data, changed = recorded
    right = changed(data).replay()["out"].tolist()
    refused = 0
    for section in ("programs", "launches", "records"):
        for path in leaves(data[section], (section,)):
            new = copy.deepcopy(data)
            *way, last = path
            place = new
            for key in way:
                place = place[key]
            old = place[last]
            place[last] = f"{old}x" if isinstance(old, str) else (old or 0) + 1
            try:
                found = changed(new).replay()["out"].tolist()
            except (ValueError, KeyError, TypeError):  # what can't be read is told by Python
                refused += 1
            else:
                assert found == right, path
    assert refused > 50


def test_elements_that_were_changed_are_refused(recorded, tmp_path):
    data, changed = recorded
    file = tmp_path / "dump" / "data.bin"
    file.write_bytes(b"?" + file.read_bytes()[1:])
    launch = changed(data)
    with pytest.raises(ValueError, match="elements of 'v' aren't those that were recorded: a replay runs"):
        launch.replay()
    assert launch.replay(trusted=True)["out"].shape == (5,)


ELSEWHERE = """
import sys
import pyarray as pa
(launch,) = pa.load_dump(sys.argv[1])
for options in ({}, {"trusted": True}):
    try:
        print(launch.replay(**options)["out"].tolist())
    except ValueError as error:
        print("signed" in str(error))
"""


@pytest.mark.parametrize("cache", [{"PYARRAY_CACHE": "0"}, {"PYARRAY_CACHE_DIR": "another"}])
def test_somebody_else_says_that_it_is_trusted(recorded, tmp_path, cache):
    data, changed = recorded
    changed(data)
    folder = {name: str(tmp_path / value) if value == "another" else value for name, value in cache.items()}
    told = run_python(ELSEWHERE, str(tmp_path / "dump"), **folder).stdout.splitlines()
    assert told == ["True", "[4.0, 3.0, 2.0, 1.0, 0.0]"]


def test_without_a_cache_the_process_itself_replays(device, tmp_path):
    pa.config.set("PYARRAY_CACHE", False)
    try:
        out, v = on(device, np.zeros(3, np.float32)), on(device, np.ones(3, np.float32))
        with pa.dump(tmp_path):
            scale(out, v, 2.0)
        assert pa.load_dump(tmp_path)[0].replay()["out"].tolist() == [2, 2, 2]
    finally:
        pa.config.set("PYARRAY_CACHE", None)


def test_the_key_is_for_its_user_alone(tmp_path):
    pa.config.set("PYARRAY_CACHE_DIR", tmp_path / "cache")
    try:
        for _ in range(2):
            with pa.dump(tmp_path / "dump"):
                pa.ones(3)
            pa.load_dump(tmp_path / "dump")[0].replay()
        key = tmp_path / "cache" / "dump.key"
        assert key.stat().st_mode & 0o777 == 0o600
        assert len(key.read_bytes()) == 32
        assert key.read_bytes() not in (tmp_path / "dump" / "manifest.json").read_bytes()
    finally:
        pa.config.set("PYARRAY_CACHE_DIR", None)
