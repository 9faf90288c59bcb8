# Every target makes its own environment first: a machine with Python >= 3.11 and make is enough.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/
# Two test processes; each keeps its linear algebra to one thread (tests/conftest.py).
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint format types check soundness tables bench docs man package clean picture

help:  ## what there is to make
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

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

tables: $(VENV)/.installed  ## the tables of the papers, recomputed
	$(RUN)python -m benchmarks.tables

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
