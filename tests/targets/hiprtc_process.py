"""Compiles a file for an AMD GPU as the driver does: `python hiprtc_process.py gfx90a kernel.cu`. It ends
with the words of a refusal."""

import sys
from pathlib import Path

from pyarray.driver.hiprtc import Hiprtc
from pyarray.errors import CompileError


def main(target, file):
    try:
        binary = Hiprtc(target).compile(Path(file).read_text())
    except CompileError as error:
        sys.exit(str(error))
    if not binary:
        sys.exit("hiprtc answered nothing")


if __name__ == "__main__":
    main(*sys.argv[1:])
