# Every target makes its own environment first: a machine with Python >= 3.11 and make is enough.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/
# Two test processes; each keeps its linear algebra to one thread (tests/conftest.py).
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types check soundness forgeries honest load mutants test-oldest coverage tables library bench docs man package clean picture

help:  ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV)/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python >= 3.11 is needed; try: make PYTHON=python3.12" >&2; exit 1; }
	test -x $(RUN)python || $(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.installed: $(VENV)/.core
	$(RUN)python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.core  ## topics of the docstrings of NumPy, SciPy and scikit-learn, certified
	$(RUN)sparcipal demo

test: $(VENV)/.installed  ## all tests
	$(RUN)python -m pytest -n $(JOBS) --dist worksteal

lint: $(VENV)/.installed  ## style and format
	$(RUN)ruff check .
	$(RUN)ruff format --check .

format: $(VENV)/.installed  ## rewrite files in the house format
	$(RUN)ruff check --fix .
	$(RUN)ruff format .

types: $(VENV)/.installed  ## types
	$(RUN)mypy

check: lint types test  ## all of the above

# How many small problems: 1000 take two minutes.
N ?= 10000
soundness: $(VENV)/.installed  ## certificates against exact arithmetic on N small problems: make soundness N=10000
	$(RUN)python -m benchmarks.soundness $(N)
	$(RUN)python -m benchmarks.soundness $(N) 0 touch
	$(RUN)python -m benchmarks.soundness $(N) 0 modes
	$(RUN)python -m benchmarks.answers.soundness $(N)

forgeries: $(VENV)/.installed  ## results changed at random, N of them, that the checker must refuse
	$(RUN)python -m tests.support.forgeries $(N)

honest: $(VENV)/.installed  ## true results of every kind, N of them, none of which the checker may refuse
	$(RUN)python -m tests.support.honest $(N)

load: $(VENV)/.installed  ## many fits at once and in a row, faults at many random moments
	SPARCIPAL_LOAD=200 SPARCIPAL_FITS=1000 SPARCIPAL_FAULTS=40 SPARCIPAL_FUZZ=1000 \
	  $(RUN)python -m pytest tests/properties/test_load.py tests/properties/test_faults.py tests/properties/test_fuzz.py

mutants: $(VENV)/.installed  ## mutation testing of what proofs rest on (a sample)
	$(RUN)python -m benchmarks.mutants 20

# The lower bounds of pyproject.toml, in an environment of their own; matplotlib 3.8 with a pyparsing of its time.
OLDEST = numpy==1.26.* scipy==1.13.* scikit-learn==1.6.* threadpoolctl==3.1.* numba==0.60.* \
  click==8.1.* rich==13.0.* matplotlib==3.8.* pyparsing==3.1.* pandas==2.1.* pyarrow==15.* \
  isal==1.6.* narwhals==1.13.* 'dask[array,dataframe,distributed]==2025.3.*' anndata==0.10.* \
  polars==1.0.* pytest==8.0.* hypothesis==6.100.* pytest-xdist==3.6.* cvxpy==1.5.*
test-oldest:  ## the tests with the oldest versions of the dependencies
	test -x $(VENV)-oldest/bin/python || $(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check $(OLDEST)
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(VENV)-oldest/bin/python -m pytest -n $(JOBS) --dist worksteal

# Compiled kernels cannot be traced: their own tests run once more without the compiler, where
# NumPy's integers warn when they wrap around as they are meant to.
coverage: $(VENV)/.installed  ## lines and branches, kernels included, in the tests' and all their processes
	rm -f .coverage .coverage.*
	NUMBA_DISABLE_JIT=1 $(RUN)python -m coverage run -m pytest -p no:xdist -m kernels \
	  -W 'ignore:overflow encountered:RuntimeWarning'
	$(RUN)python -m coverage run -m pytest -n $(JOBS) --dist worksteal
	$(RUN)python -m coverage combine --quiet
	$(RUN)python -m coverage report --show-missing --skip-covered --fail-under=95

tables: $(VENV)/.installed  ## the tables of the papers, recomputed
	$(RUN)python -m benchmarks.tables --jobs $(JOBS)

library: $(VENV)/.installed  ## the best known values and bounds, rechecked by `verify` alone
	$(RUN)python -m benchmarks.library

# Which benchmark: a folder of benchmarks/.
TOPIC ?= speed
bench: $(VENV)/.installed  ## a benchmark, both sides in one run: make bench TOPIC=speed
	$(RUN)python -m benchmarks.$(TOPIC)

docs: $(VENV)/.installed  ## the documentation, in docs/_build/html
	$(RUN)python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(RUN)python -m sphinx -W -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

man: $(VENV)/.core  ## manual pages, in docs/_build/man
	$(RUN)python docs/manual.py docs/_build/man

package: $(VENV)/.installed  ## a wheel and an sdist in dist/
	$(RUN)python -m pip install --quiet --disable-pip-version-check build
	$(RUN)python -m build

clean:  ## remove what was made, the environment included
	rm -rf $(VENV) build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis

picture: $(VENV)/.core  ## the picture of the demo in the README
	@mkdir -p build
	$(RUN)sparcipal demo --quiet --out build/demo.json > /dev/null
	$(RUN)python docs/picture.py build/demo.json docs/images/demo.svg
