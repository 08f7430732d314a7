# Each target works alone on a fresh clone, with Python >= 3.11, a C compiler and make. Stamps in .venv make a second run quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
INSTALLED := $(VENV)/installed
# What the installed package is made from; Python files are read in place.
BUILT_FROM := setup.py pyproject.toml csrc/build_runtime.py $(wildcard csrc/runtime/*.c csrc/runtime/*.h)

.PHONY: all demo test lint bench clean

all: $(INSTALLED)

demo: $(INSTALLED) $(VENV)/with-demo
	$(BIN)/python docs/examples/digits.py

# First what the kernels compute, then whether the GPU text of all of them compiles: tests/targets.
test: $(INSTALLED) $(VENV)/with-test
	$(BIN)/python -m pytest --record-kernels $(VENV)/kernels --numprocesses auto --dist worksteal $(ARGS)
	PYARRAY_TEST_DEVICES=cpu $(BIN)/python -m pytest --compile-kernels $(VENV)/kernels --numprocesses auto --dist worksteal tests/targets/test_emitted.py

lint: $(INSTALLED) $(VENV)/with-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

bench: $(INSTALLED) $(VENV)/with-bench
	$(BIN)/python -m bench $(ARGS)

clean:
	rm -rf $(VENV) build *.egg-info pyarray/_runtime*.so

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pyarray needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(BUILT_FROM) | $(BIN)/python
	$(PIP) --editable .
	touch $@

# One after another even under `make -j`: two pips in one environment disturb each other.
.NOTPARALLEL:

$(VENV)/with-demo: pyproject.toml | $(INSTALLED)
	$(PIP) --editable '.[demo]'
	touch $@

# torch and dask only widen the tests, which skip what is absent.
$(VENV)/with-test: pyproject.toml | $(INSTALLED)
	$(PIP) --editable '.[test]'
	$(PIP) torch==2.13.0 'dask[array]' || echo 'no torch or dask here: the interop tests will be skipped'
	touch $@

$(VENV)/with-dev: pyproject.toml | $(INSTALLED)
	$(PIP) --editable '.[dev]'
	touch $@

$(VENV)/with-bench: pyproject.toml | $(INSTALLED)
	$(PIP) --editable '.[bench]'
	touch $@
