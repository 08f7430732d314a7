# Each target works alone on a fresh clone, with Python >= 3.11, a C compiler and make. Stamps in .venv make a second
# run quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
INSTALLED := $(VENV)/installed
# What the installed package is made from; Python files are read in place.
BUILT_FROM := setup.py pyproject.toml csrc/build_runtime.py \
  $(wildcard csrc/runtime/*.c csrc/runtime/*.h csrc/core/*.c csrc/core/*.h)

.PHONY: all demo test test-long test-amd amd-report test-oldest test-sanitized differential \
  warm-calls torch-graphs random-programs \
  lint bench docs conformance clean

all: $(INSTALLED)

demo: $(INSTALLED) $(VENV)/with-demo
	$(BIN)/python docs/examples/digits.py

# First what the kernels compute, then whether the GPU text of all of them compiles: tests/targets. What is compiled is
# kept in .venv/test-cache, by hashes of all that decides it. There is a worker more than there are cores, since tests
# that wait for a process leave one idle.
WORKERS = --numprocesses $$(($$($(BIN)/python -c 'import os; print(os.cpu_count())') + 1)) --dist worksteal
test: $(INSTALLED) $(VENV)/with-test $(VENV)/with-dev
	PYARRAY_TEST_RECORD=$(VENV)/kernels $(BIN)/python -m pytest $(WORKERS) $(ARGS)
	PYARRAY_TEST_COMPILE=$(VENV)/kernels PYARRAY_TEST_DEVICES=cpu $(BIN)/python -m pytest \
	  $(WORKERS) tests/targets/test_emitted.py

# The same with so many times as many drawn cases, every variant of a test where `make test` takes some by turns, and
# all kernels optimised as for users.
TIMES ?= 10
test-long:
	PYARRAY_TEST_TIMES=$(TIMES) $(MAKE) test

# The tests of devices on AMD code objects, executed instruction by instruction: docs/design/amd_isa.md. All variants,
# and what is slow. Then the executor reads the code objects of all kernels that `make test` has recorded, or else those
# of this run, unless it has read them when they were executed.
AMD_TARGETS ?= gfx942 gfx1100
AMD_TESTS ?= tests/amd_isa tests/device
test-amd: $(INSTALLED) $(VENV)/with-test
	recorded=$(VENV)/kernels; decoded=$(abspath $(VENV))/amd-decoded; rm -rf $$decoded; \
	[ -d $$recorded ] || { recorded=$(VENV)/amd-kernels; export PYARRAY_TEST_RECORD=$$recorded; }; \
	for target in $(AMD_TARGETS); do mkdir -p $$decoded/$$target; HIP_EMULATOR_ISA=$$target \
	  PYARRAY_TEST_DEVICES=hip:0 PYARRAY_TEST_DECODED=$$decoded/$$target $(BIN)/python -m pytest \
	  --numprocesses auto --dist worksteal -q $(AMD_TESTS) $(ARGS) || exit 1; done; \
	unset PYARRAY_TEST_RECORD; \
	for target in $(AMD_TARGETS); do HIP_EMULATOR_ISA=$$target PYARRAY_TEST_DEVICES=cpu \
	  PYARRAY_TEST_COMPILE=$$recorded PYARRAY_TEST_DECODED=$$decoded/$$target $(BIN)/python -m pytest \
	  --numprocesses auto --dist worksteal -q tests/amd_isa/test_recorded.py || exit 1; done

# On a machine with an AMD GPU and ROCm: runs the tests of devices on it, and writes amd-report.txt. docs/guide/amd.md
amd-report: $(INSTALLED) $(VENV)/with-test
	$(BIN)/python -m tests.amd_report $(ARGS)

# With the lowest versions of Python (PYTHON=python3.11) and of the dependencies that pyproject.toml allows, on the CPU.
OLDEST = $(VENV)/oldest/bin/python
OLDEST_TESTS ?= tests/unit tests/api --ignore tests/unit/test_installation.py \
  --deselect tests/unit/test_stubs.py::test_a_typed_script
test-oldest: $(INSTALLED) $(VENV)/oldest/installed
	PYTHONPATH=. PYARRAY_TEST_DEVICES=cpu $(OLDEST) -m pytest \
	  $(WORKERS) -q $(OLDEST_TESTS) $(ARGS)

# The lowest versions of the dependencies, one in a line.
LOWEST = import tomllib; wanted = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]; \
  print(*(d.replace(">=", "==") for d in wanted), sep="\n")

$(VENV)/oldest/installed: pyproject.toml | $(INSTALLED)
	$(PYTHON) -m venv $(VENV)/oldest
	$(BIN)/python -c '$(LOWEST)' > $(VENV)/oldest.txt
	$(OLDEST) -m pip --disable-pip-version-check install --quiet --requirement $(VENV)/oldest.txt \
	  pytest pytest-xdist hypothesis
	touch $@

# The C runtime and some kernels under the sanitizers for threads, addresses and undefined behaviour: tests/sanitized.
# Other tests: make test-sanitized ARGS='tests/api tests/device'
test-sanitized: $(INSTALLED) $(VENV)/with-test
	$(BIN)/python -m tests.sanitized $(ARGS)

# Drawn calls of every function against NumPy: docs/design/differential.md
CALLS ?= 10000
DEVICE ?= cpu
SEED ?= 0
differential: $(INSTALLED)
	$(BIN)/python -m tests.differential --calls $(CALLS) --device $(DEVICE) --seed $(SEED) $(ARGS)

# The same functions cold, warm and captured, with operands that change in between: docs/design/differential.md
warm-calls: $(INSTALLED)
	$(BIN)/python -m tests.warm_calls --calls $(CALLS) --device $(DEVICE) --seed $(SEED) $(ARGS)

# Drawn graphs through torch.compile(backend="pyarray") against eager torch: docs/design/torch.md
GRAPHS ?= 1000
torch-graphs: $(INSTALLED)
	$(BIN)/python -m tests.torch_graphs --graphs $(GRAPHS) --device $(DEVICE) --seed $(SEED) $(ARGS)

# Random programs of the kernel language against plain Python, in release and debug mode: docs/design/differential.md
PROGRAMS ?= 1000
random-programs: $(INSTALLED)
	$(BIN)/python -m tests.random_programs --programs $(PROGRAMS) --device $(DEVICE) --seed $(SEED) $(ARGS)

# The two that check types side by side: each takes one core. One reads torch, which pyarray/torch is written against.
lint: $(INSTALLED) $(VENV)/with-test $(VENV)/with-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy & mypy=$$!; $(BIN)/basedpyright --level error; other=$$?; wait $$mypy && exit $$other

# Writes bench/out/results.json and report.html, and compares with the run before: bench/README.md
bench: $(INSTALLED) $(VENV)/with-bench
	$(BIN)/python -m bench $(ARGS)

# The site into build/site, by mkdocs.yml. Warnings are errors: pages that the navigation lacks,
# links and anchors to nothing.
docs: $(INSTALLED) $(VENV)/with-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build $(ARGS)

# The array API's own suite, from a checkout with its submodule (docs/conformance.md):
# make conformance SUITE=../array-api-tests
# Against the installed package, so in an environment of its own. Fails unless all that fails is what that page
# explains.
EXAMPLES ?= 200
conformance: | $(BIN)/python
	@test -d "$(SUITE)/array-api/src" || { \
	  echo "SUITE=$(SUITE) is no checkout of data-apis/array-api-tests with its submodule array-api"; exit 1; }
	$(PYTHON) -m venv $(VENV)/conformance
	rm -rf build/lib*
	$(VENV)/conformance/bin/pip --disable-pip-version-check install --quiet . pytest-xdist \
	  --requirement "$(SUITE)/requirements.txt"
	cd "$(SUITE)" && ARRAY_API_TESTS_MODULE=pyarray ARRAY_API_TESTS_VERSION=2025.12 \
	  $(abspath $(VENV))/conformance/bin/python -m pytest array_api_tests --quiet -rf --max-examples=$(EXAMPLES) \
	  --disable-deadline --numprocesses auto --dist worksteal $(ARGS) | tee $(abspath $(VENV))/conformance.txt
	@grep -q ' passed' $(VENV)/conformance.txt
	@! grep -E '^(FAILED|ERROR)' $(VENV)/conformance.txt | grep -vE 'test_special_cases.*floor_?div'

clean:
	rm -rf $(VENV) build *.egg-info pyarray/_runtime*.so pyarray/_core*.so pyarray/_warmed

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pyarray needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# compat: a path that editors and type checkers read, and that goes before a folder called pyarray where a script runs.
$(INSTALLED): $(BUILT_FROM) | $(BIN)/python
	$(PIP) --editable . --config-settings editable_mode=compat
	touch $@

# One after another even under `make -j`: two pips in one environment disturb each other.
.NOTPARALLEL:

# An extra's requirements from pyproject.toml, one in a line: `pip install '.[extra]'` would build the package
# anew for each.
EXTRA = import sys, tomllib; \
  print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")

$(VENV)/demo.txt $(VENV)/test.txt $(VENV)/dev.txt $(VENV)/docs.txt $(VENV)/bench.txt: \
  $(VENV)/%.txt: pyproject.toml | $(INSTALLED)
	$(BIN)/python -c '$(EXTRA)' $* > $@

$(VENV)/with-demo $(VENV)/with-dev $(VENV)/with-docs: $(VENV)/with-%: $(VENV)/%.txt
	$(PIP) --requirement $<
	touch $@

# These only widen the tests, which skip what is absent.
$(VENV)/with-test: $(VENV)/test.txt
	$(PIP) --requirement $<
	$(PIP) torch==2.13.0 'dask[array]' scipy scikit-learn array-api-compat || \
	  echo 'not all of torch, dask, scipy and scikit-learn here: their tests will be skipped'
	$(PIP) distributed xarray || echo 'no distributed or no xarray here: their tests will be skipped'
	$(PIP) mpi4py mpich || echo 'no mpi4py or no MPI here: its tests will be skipped'
	touch $@

# Where one of the peers can't be had, the others alone: the page says which is missing.
$(VENV)/with-bench: $(VENV)/bench.txt
	$(PIP) --requirement $< || while read peer; do $(PIP) "$$peer" || echo "no $$peer here"; done < $<
	touch $@
