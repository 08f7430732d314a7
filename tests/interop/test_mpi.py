"""Arrays go through MPI as they are: mpi4py reads and writes their memory, in two processes."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from mpi4py import MPI
import pyarray as pa

world = MPI.COMM_WORLD
rank = world.rank
assert world.size == 2

for name in ("int8", "uint16", "int32", "int64", "float32", "float64", "complex64", "complex128"):
    a = pa.full((3, 4), rank + 1, dtype=name)
    if rank == 0:
        world.Send(a, dest=1)
    else:
        world.Recv(a, source=0)
    assert a.tolist() == pa.ones((3, 4), dtype=name).tolist(), name

    total = pa.empty((3, 4), dtype=name)
    world.Allreduce(pa.full((3, 4), rank + 1, dtype=name), total)
    assert total.tolist() == pa.full((3, 4), 3, dtype=name).tolist(), name

b = pa.arange(6.0) if rank == 0 else pa.zeros(6)
world.Bcast(b)
assert b.tolist() == [0, 1, 2, 3, 4, 5]

half = b[3 * rank:3 * rank + 3]                      # views are sent from where they are
every = pa.zeros(6)
world.Allgather(half * 2, every)
assert every.tolist() == [0, 2, 4, 6, 8, 10]
world.Allgather(MPI.IN_PLACE, every)

request = world.Isend(half, dest=1 - rank)
world.Recv(every[:3], source=1 - rank)
request.Wait()
assert every[:3].tolist() == ([3, 4, 5] if rank == 0 else [0, 1, 2])

brain = pa.full(4, rank, dtype="bfloat16")           # MPI has no such type: its bytes
world.Bcast(brain.view("uint8"), root=1)
assert brain.tolist() == [1, 1, 1, 1]

gone = world.sendrecv(pa.arange(3) + rank, dest=1 - rank, source=1 - rank)   # pickled
assert gone.tolist() == [1 - rank, 2 - rank, 3 - rank] and isinstance(gone, pa.ndarray)

try:
    world.Send(b[::2], dest=1 - rank)
except BufferError:
    print("refused")
"""


def in_two_processes(program, tmp_path):
    """What the program prints."""
    beside = Path(sys.executable).with_name("mpiexec")
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    if importlib.util.find_spec("mpi4py") is None or mpiexec is None:
        pytest.skip("no mpi4py, or no mpiexec")
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [mpiexec, "-n", "2", sys.executable, str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_messages(tmp_path):
    assert in_two_processes(PROGRAM, tmp_path).count("refused") == 2


@pytest.mark.slow
def test_the_guides_program(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "guide" / "dask.md").read_text(encoding="utf-8")
    (found,) = re.finditer(r"^```py\n(.*?)^```\n\n^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert in_two_processes(found[1], tmp_path) == found[2]
