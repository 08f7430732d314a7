"""Processes that tune the same kernel: one searches, the others wait; one that is killed is gone on with. And
`python -m pyarray tune`."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from pyarray import __main__ as command
from pyarray.debug import tuning

SCRIPT = """
import json, sys, time
import numpy as np
import pyarray as pa

seen, ran = {}, []

def slow(fn):
    fn()
    ran.append(seen["block"])
    time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0.0)
    if len(sys.argv) > 2 and len(set(ran)) == int(sys.argv[2]):
        time.sleep(600)  # until it is killed
    return 10.0 - seen["block"] if seen["block"] < 9 else 50.0

@pa.autotune(configs=[pa.Config(block=b) for b in range(1, 9)], key=["n"], warmup=0, rep=2, bench=slow,
             pre_hook=seen.update, artifact_name="scaled",
             cases=lambda: [(OUT, V, 8), {"out": OUT, "v": V, "n": 16}])
@pa.kernel
def scaled(out, v, n: int, block: pa.constexpr):
    for i in range((n + block - 1) // block):
        for k in range(i * block, min(n, (i + 1) * block)):
            out[k] = 2 * v[k]

OUT, V = pa.zeros(16), pa.arange(16.0)
scaled(OUT, V, 12)
assert OUT.tolist()[:12] == [2.0 * k for k in range(12)]
print(json.dumps(scaled.cache_info() | {"config": scaled.choice(OUT, V, 12)[0]["block"],
      "source": scaled.choice(OUT, V, 12)[1], "ran": len(set(ran))}))
"""


@pytest.fixture
def start(tmp_path):
    """Starts the script, with a cache of its own; ends what is left of it."""
    (tmp_path / "app.py").write_text(SCRIPT)
    started = []

    def launch_script(*arguments, **environment):
        own = {k: v for k, v in os.environ.items() if not k.startswith("PYARRAY_")}
        own |= {"PYARRAY_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(sys.path)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [sys.executable, *arguments]
        started.append(subprocess.Popen(command, env=own | environment, cwd=tmp_path, **pipes))
        return started[-1]

    yield launch_script
    for process in started:
        process.kill()
        process.communicate()


def outcome(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def json_of(process):
    out, err = outcome(process)
    assert "Warning" not in err
    return json.loads(out.splitlines()[-1])


def rows(folder):
    """Timings on disk."""
    found = []
    for path in (folder / "cache" / "tune").glob("*.json"):
        for entry in json.loads(path.read_text())["entries"].values():
            found += entry["timings"].values()
    return found


@pytest.mark.slow
def test_of_several_processes_one_searches(start):
    infos = [json_of(p) for p in [start("app.py", "0.02") for _ in range(3)]]
    assert sorted(info["searches"] for info in infos) == [0, 0, 1]
    assert {info["config"] for info in infos} == {8}
    later = json_of(start("app.py"))
    assert (later["searches"], later["ran"], later["source"], later["config"]) == (0, 0, "winner", 8)


@pytest.mark.slow
def test_a_killed_search_is_gone_on_with(start, tmp_path):
    killed = start("app.py", "0.3", "6")
    end = time.monotonic() + 300
    while time.monotonic() < end and len(rows(tmp_path)) < 2:
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    known = len(rows(tmp_path))
    assert 2 <= known < 8
    again = json_of(start("app.py"))
    assert again["searches"] == 1
    assert again["config"] == 8
    assert len([r for r in rows(tmp_path) if r["rough"]]) == 0
    assert json_of(start("app.py"))["searches"] == 0


@pytest.mark.slow
def test_tuning_ahead_writes_artifacts_that_another_machine_finds(start, tmp_path):
    command = ("-m", "pyarray", "tune", "--out", "shipped", "app.py")
    out, err = outcome(start(*command))
    assert "3 searches" in out
    assert "scaled n=12: Config(block=8), 2 ms" in out
    assert err.count("8/8 scaled: Config(block=8) is the fastest of 8: 2 ms") == 3
    assert len(list((tmp_path / "shipped").glob("scaled-*.json"))) == 3
    again, _ = outcome(start(*command))
    assert "0 searches" in again
    assert "3 artifacts in shipped" in again
    fresh, _ = outcome(start("-m", "pyarray", "tune", "--fresh", "app.py"))
    assert "3 searches" in fresh
    there = json_of(start("app.py", PYARRAY_CACHE_DIR=str(tmp_path / "other"), PYARRAY_AUTOTUNE_CONFIG_DIR="shipped"))
    assert (there["searches"], there["ran"], there["source"], there["config"]) == (0, 0, "artifact", 8)

    shown, _ = outcome(start("-m", "pyarray", "tune", "show", "scal"))
    assert shown.count("__main__.scaled n=") == 3
    lines = [line for line in shown.splitlines() if "Config(block=" in line][:8]
    assert lines[0].startswith("* Config(block=8)")
    assert [line.count("#") for line in lines] == sorted(line.count("#") for line in lines)
    nothing = start("-m", "pyarray", "tune", "show", "other")
    assert nothing.wait() == 1


@pytest.mark.slow
def test_a_failed_case_is_said(start, tmp_path):
    (tmp_path / "broken.py").write_text(
        "import pyarray as pa\n"
        "@pa.autotune(configs=[pa.Config(b=1), pa.Config(b=2)], cases=lambda: [pa.ones(4)])\n"
        "@pa.kernel\n"
        "def broken(v, b: pa.constexpr):\n"
        "    for i in range(v.size):\n"
        "        v[i] = v[i + 4] + b\n"
    )
    process = start("-m", "pyarray", "tune", "broken")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "all 2 candidates failed" in err
    assert "BoundsError" in err


ENDS = """
import sys
import pyarray as pa

@pa.autotune(configs=[pa.Config(b=1), pa.Config(b=2)], warmup=0, rep=1, artifact_name="up")
@pa.kernel
def up(v, b: pa.constexpr):
    for i in range(v.size):
        v[i] = v[i] + 1 + 0 * b

@pa.autotune(configs=[pa.Config(b=1), pa.Config(b=2)], cases=lambda: [3, {"w": pa.ones(3)}])
@pa.kernel
def never(v, b: pa.constexpr):
    for i in range(v.size):
        v[i] = v[i] + b * 0

@pa.autotune(configs=[pa.Config(b=1), pa.Config(b=2)])
@pa.kernel
def idle(v, b: pa.constexpr):
    for i in range(v.size):
        v[i] = b

def main():
    v = pa.zeros(8)
    up(v)
    assert v.tolist() == [1.0] * 8

if __name__ == "__main__":
    main()
    if sys.argv[1:] == ["--fail"]:
        raise ValueError("oh")
    if sys.argv[1:] == ["--interrupt"]:
        raise KeyboardInterrupt
    sys.exit(sys.argv[1] if sys.argv[1:] else 0)
"""


def ended(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.mark.slow
def test_scripts_that_end_themselves_or_fail_have_tuned(start, tmp_path):
    (tmp_path / "ends.py").write_text(ENDS)
    command = ("-m", "pyarray", "tune", "--out", "shipped", "ends.py")
    code, out, err = ended(start(*command))
    assert code == 1
    assert "up: Config(b=" in out
    assert "1 artifact in shipped; set PYARRAY_AUTOTUNE_CONFIG_DIR to it" in out
    assert "idle was not called: run a script that does, or give autotune cases=..." in out
    assert "never has no artifact_name, so nothing of it is shipped" in out
    assert "never, of the case {'w': " in err
    assert "TypeError: never() has no keyword 'w'; did you mean 'v'? It takes v, b" in err
    for arguments, message in ((("--", "--fail"), "ValueError: oh"), (("3",), "ends.py ended with '3'")):
        code, out, err = ended(start(*command, *arguments))
        assert code == 1
        assert message in err
        assert "runpy" not in err
        assert "1 artifact in shipped" in out
    code, out, err = ended(start(*command, "--", "--interrupt"))
    assert (code, "Traceback" in err) == (130, False)
    assert "goes on from here" in err


@pytest.mark.parametrize(
    ("target", "message"),
    [("none.py", "there is no file none.py"), ("none.at.all", "there is no module none.at.all")],
)
def test_what_isn_t_there_is_said_in_a_line(target, message, capsys):
    assert tuning.tune(target, None, False, ()) == 1
    said = capsys.readouterr()
    assert said.err.startswith(message)
    assert said.out.startswith("0 searches in ")


def test_where_nothing_is_kept_it_is_said(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(tuning.store, "folder", lambda: None)
    (tmp_path / "empty.py").write_text("")
    assert tuning.tune(str(tmp_path / "empty.py"), None, False, ()) == 0
    assert tuning.show(None, None) == 1
    out = capsys.readouterr().out
    assert "empty.py has no tuned kernel; they are made by pa.autotune" in out
    assert out.count("PYARRAY_CACHE is 0") == 2


SHIPS = """
import pyarray as pa

def made(name, *blocks):
    @pa.autotune(configs=[pa.Config(b=b) for b in blocks], warmup=0, rep=1, artifact_name=name)
    @pa.kernel
    def kernel(v, b: pa.constexpr):
        for i in range(v.size):
            v[i] = 1
    return kernel

kernels = [made("first", 1, 2), made("tuples", (1, 2), (3, 4)), made("last", 1, 2)]
for kernel in kernels:
    kernel(pa.zeros(4))
"""


@pytest.mark.slow
def test_one_that_can_t_be_shipped_leaves_the_others(start, tmp_path):
    (tmp_path / "ships.py").write_text(SHIPS)
    code, out, err = ended(start("-m", "pyarray", "tune", "--out", "shipped", "ships.py"))
    assert code == 1
    assert "2 artifacts in shipped" in out
    assert sorted(p.name.split("-")[0] for p in (tmp_path / "shipped").iterdir()) == ["first", "last"]
    (line,) = (line for line in err.splitlines() if "no artifact is written" in line)
    assert line.startswith("tuples: no artifact is written: Config(b=(")
    assert "Traceback" not in err


@pytest.mark.slow
def test_what_was_not_timed_is_not_shipped(start, tmp_path):
    (tmp_path / "ships.py").write_text(SHIPS)
    command = ("-m", "pyarray", "tune", "--fresh", "--out", "shipped", "ships.py")
    code, out, err = ended(start(*command, PYARRAY_AUTOTUNE_BUDGET="0"))
    assert code == 1
    assert not list((tmp_path / "shipped").iterdir())
    assert "artifact" not in out
    assert err.count("no candidate was timed, so none is chosen: the budget was over, or memory was short") == 3
    code, out, err = ended(start(*command[:3], *command[4:], PYARRAY_RUN_ONLY="1"))
    assert (code, "Config" in out) == (1, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "", "app.py"], "--out is empty; name a folder"),
        (
            ["--out", "file", "app.py"],
            "no artifact can be written to --out file: File exists; name another fold",
        ),
        (["--out", "file/x", "app.py"], "written to --out file/x: Not a directory; name another folder"),
        (["--out", "/proc/x", "app.py"], "written to --out /proc/x: No such file or directory; name another"),
        (["."], "expected a script (app.py) or a module (package.module), got '.'"),
        ([""], "expected a script (app.py) or a module (package.module), got ''"),
        (["a..b"], "expected a script (app.py) or a module (package.module), got 'a..b'"),
        (["app.py", "--plot", "x"], "--plot is for show; what is meant for the script goes after --"),
        (
            ["show", "--out", "d"],
            "show searches nothing, so it takes no --out and no --fresh; name a script or",
        ),
        (["show", "--fresh"], "show searches nothing"),
        (
            ["show", "two", "extra"],
            "show takes one part of a kernel's name, got two extra; leave out the rest",
        ),
    ],
)
def test_what_makes_no_sense_is_said_in_a_line(arguments, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    (tmp_path / "app.py").write_text("raise AssertionError('it has run')")
    with pytest.raises(SystemExit) as ending:
        command.main(["tune", *arguments])
    assert ending.value.code == 2
    said = capsys.readouterr()
    assert said.err.startswith("python -m pyarray tune: ")
    assert message in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["PYARRAY_AUTOTUNE", "PYARRAY_AUTOTUNE_BUDGET"])
@pytest.mark.parametrize("target", ["app.py", "show"])
def test_settings_that_can_t_be_read_are_said_in_a_line(name, target, capsys, monkeypatch):
    monkeypatch.setenv(name, "bogus")
    with pytest.raises(SystemExit) as ending:
        command.main(["tune", target])
    assert ending.value.code == 2
    line = rf"python -m pyarray tune: {name}='bogus': expected .*; correct or unset {name}\n"
    assert re.fullmatch(line, capsys.readouterr().err)


def test_runs_that_take_no_time_are_shown():
    """A `bench` may give 0."""
    times = {f"c{k}": {"config": f"c{k}", "median": ms, "spread": 0.0} for k, ms in enumerate([0, 0.0, 2.0])}
    lines = tuning.table("m.f", {"timings": times, "winners": {}})[2:]
    assert [" 1.00x " in line for line in lines] == [True, True, False]
    assert " infx " in lines[2]
    assert [line.count("#") for line in lines] == [0, 0, tuning.WIDTH]
    only = tuning.table("m.f", {"timings": {"c0": times["c0"]}, "winners": {}})[2:]
    assert [" 1.00x " in line for line in only] == [True]


@pytest.mark.parametrize("name", ["times.xyz", "none/times.png"])
def test_a_picture_that_can_t_be_written(name, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    entry = {"timings": {"c0": {"config": "c0", "median": 0.0, "spread": 0.1}}, "winners": {}}
    monkeypatch.setattr(tuning, "_entries", lambda word: [("m.f", entry)])
    assert tuning.show(None, tmp_path / name) == 2
    said = capsys.readouterr()
    assert "m.f" in said.out
    assert said.err.startswith(f"no picture can be written to --plot {tmp_path / name}: ")
    assert said.err.endswith("; name another file\n")
    assert said.err.count("\n") == 1


def test_a_picture_of_the_times(tmp_path, capsys, monkeypatch):
    times = {f"c{k}": {"config": f"Config(b={k})", "median": k + 1.0, "spread": 0.1} for k in range(3)}
    entry = {
        "timings": times | {"d": {"config": "Config(b=9)", "reason": "CompileError"}},
        "winners": {"s": "c0"},
    }
    lines = tuning.table("m.f", entry)
    assert lines[2].startswith("* Config(b=0)")
    assert lines[-1].endswith("CompileError")
    monkeypatch.setattr(tuning.importlib.util, "find_spec", lambda name: None)
    tuning.draw([("m.f", entry)], tmp_path / "times.png")
    assert "pip install matplotlib" in capsys.readouterr().out
    monkeypatch.undo()
    pytest.importorskip("matplotlib")
    tuning.draw([("m.f", entry)], tmp_path / "times")
    assert f"picture in {tmp_path / 'times.png'}" in capsys.readouterr().out
    assert (tmp_path / "times.png").read_bytes().startswith(b"\x89PNG")
