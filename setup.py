"""Builds what pyproject.toml cannot say: the C runtime, and the headers that generated kernels include."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HEADERS = ("csrc/runtime/pyarray.h", "csrc/device/*.h")


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


setup(cffi_modules=["csrc/build_runtime.py:ffi"], cmdclass={"build_py": BuildWithHeaders})
