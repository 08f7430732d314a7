"""Runs the tests of devices on this machine's AMD GPU and writes one file that tells all: `make amd-report`."""

import argparse
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ["tests/device", "tests/lang"]


def _output(command, environment=None):
    """What a command says; why it can't, where it can't."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace")
    except OSError as error:
        return f"{command[0]}: {error}", 127
    return (done.stdout + done.stderr).strip(), done.returncode


def report(arguments, device="hip:0"):
    """The report's text, and whether all tests passed on `device`."""
    environment = os.environ | {
        "HIP_EMULATOR": "0", "PYARRAY_TEST_DEVICES": device, "PYARRAY_WARMED": "0", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    parts = {
        "commit": _output(["git", "describe", "--always", "--dirty"])[0],
        "machine": f"{platform.platform()}, Python {platform.python_version()}",
        "pyarray info": _output([sys.executable, "-m", "pyarray", "info"], environment)[0],
        "rocminfo": "\n".join(
            line.strip() for line in _output(["rocminfo"])[0].splitlines()
            if any(word in line for word in ("Marketing Name", "gfx", "rocminfo:"))
        ),
    }  # fmt: skip
    start = time.time()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *(arguments or TESTS)]
    words, code = _output(command, environment)
    parts[f"tests on {device}: exit status {code}, {time.time() - start:.0f} s"] = words
    return "".join(f"==== {title}\n{text}\n\n" for title, text in parts.items()), code == 0


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.amd_report", description=__doc__)
    parser.add_argument("--output", default="amd-report.txt", help="the file to write")
    parser.add_argument("--device", default="hip:0", help="the device to test")
    parser.add_argument("tests", nargs="*", help="what pytest gets instead of all tests of devices")
    given = parser.parse_args()
    text, passed = report(given.tests, given.device)
    Path(given.output).write_text(text)
    print(text.strip().splitlines()[-1])
    print(f"{given.output}: please attach it to an issue, whether all passed or not")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
