"""What kernels print: a buffer for each launch, whose lines go to Python's stdout behind it (`lang.print_lowering`)."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..array import empty
from ..array_convert import asnumpy
from ..dtypes import int64
from ..lang.messages import text_of
from ..lang.print_lowering import HEADER, Line, lines_of
from ..memory.host_access import upload

WORDS = 1 << 17  # of a buffer: 1 MiB


class PrintBuffer:
    """The lines of one launch. `array` is the kernel's further argument."""

    def __init__(self, device: Any, lines: tuple[Line, ...]):
        self.array, self._lines = empty(WORDS, int64, device), lines
        header = np.zeros(HEADER, np.int64)
        header[0] = HEADER  # where the first line goes
        upload(device, self.array._ptr, header)

    def show(self, kernel: str) -> None:
        """Writes the lines behind the launch, in the order of phase and iteration."""
        used = int(asnumpy(self.array[:1])[0])
        if used == HEADER:
            return
        words = asnumpy(self.array[: min(used, WORDS)])
        sys.stdout.write("".join(text_of(line.template, numbers)[0] for line, numbers in lines_of(words, self._lines)))
        if lost := int(words[1]):
            sys.stdout.write(
                f"kernel[{kernel}]: {lost} lines were lost: there was no room for more than {WORDS} words\n"
            )
