"""Compiles a file for an AMD GPU by hiprtc: `python hiprtc_process.py gfx90a kernel.cu`. It ends
with the words of a refusal."""

import ctypes
import sys
from pathlib import Path

from pyarray.driver.cc import include_dirs


def main(target, file):
    lib = ctypes.CDLL("libhiprtc.so")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = [f"--offload-arch={target}", "-std=c++17", "-ffp-contract=off", "-w"]
    options += [f"-I{folder}" for folder in include_dirs()]
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    lib.hiprtcCreateProgram(ctypes.byref(program), Path(file).read_bytes(), b"kernel.cu", 0, None, None)
    if lib.hiprtcCompileProgram(program, len(options), array):
        lib.hiprtcGetProgramLogSize(program, ctypes.byref(size))
        words = ctypes.create_string_buffer(size.value + 1)
        lib.hiprtcGetProgramLog(program, words)
        sys.exit(words.value.decode(errors="replace") or "refused without a word")


if __name__ == "__main__":
    main(*sys.argv[1:])
