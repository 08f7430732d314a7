"""Builds what pyproject.toml cannot say: the C runtime, the headers that generated kernels include, and the
kernels of common calls."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_py import build_py

HEADERS = ("csrc/runtime/pyarray.h", "csrc/device/*.h")
OFF = ("0", "false", "no", "off")


class BuildWithHeaders(build_py):
    """Copies the C headers into pyarray/include. An editable install has none: driver/cc.py reads csrc."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for source, copy in self._headers():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)

    def _headers(self) -> list[tuple[Path, Path]]:
        include = Path(self.build_lib, "pyarray", "include")
        return [(source, include / source.name) for glob in HEADERS for source in sorted(Path().glob(glob))]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        copies = [] if self.editable_mode else [str(copy) for _, copy in self._headers()]
        return [*super().get_outputs(include_bytecode), *copies]


class BuildWarmed(Command):
    """Compiles the kernels of common calls into pyarray/_warmed, with the package just built. What fails here
    is compiled at its first use, so the build goes on."""

    description = "compile the kernels of common calls"
    user_options = []  # noqa: RUF012

    def initialize_options(self) -> None:
        self.build_lib, self.editable_mode = None, False

    def finalize_options(self) -> None:
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        folder = self._folder()
        if os.environ.get("PYARRAY_WARMED", "").strip().lower() in OFF:
            shutil.rmtree(folder, ignore_errors=True)
            return
        # an isolated build has its requirements on sys.path by ways of its own
        path = os.pathsep.join(filter(None, (str(folder.parents[1]), *sys.path)))
        command = [sys.executable, "-m", "pyarray", "cache", "warm", str(folder)]
        done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            said = done.stderr.strip().rpartition("\n")[2]
            print(f"no kernels are compiled ahead, each will be at its first use: {said}", file=sys.stderr)

    def _folder(self) -> Path:
        return Path("" if self.editable_mode else self.build_lib).resolve() / "pyarray" / "_warmed"

    def get_source_files(self) -> list[str]:
        return []

    def get_outputs(self) -> list[str]:
        return [] if self.editable_mode else [str(path) for path in self._folder().glob("*.kernel")]

    def get_output_mapping(self) -> dict[str, str]:
        return {}


build.sub_commands.append(("build_warmed", None))
# CFLAGS come before these words, and of several levels the last one counts.
LEVEL = () if "-O" in os.environ.get("CFLAGS", "") else ("-O2",)
CORE = Extension(
    "pyarray._core",
    sources=[str(path) for path in sorted(Path("csrc/core").glob("*.c"))],
    depends=[str(path) for path in sorted(Path("csrc/core").glob("*.h"))],
    include_dirs=[np.get_include()],
    extra_compile_args=["-std=gnu11", *LEVEL, "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing"],
)
setup(
    ext_modules=[CORE],
    cffi_modules=["csrc/build_runtime.py:ffi"],
    cmdclass={"build_py": BuildWithHeaders, "build_warmed": BuildWarmed},
)
