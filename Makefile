# The two commands of the README are `make demo` and `make test`; `make lint` is what CI adds.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_WORKERS ?= 2
STAMP := $(VENV)/.installed

.PHONY: demo test lint install clean
demo: install
	$(BIN)/slimgrad compare --recipe digits --out demo

test: install
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python tools/check_sizes.py

install: $(STAMP)

# Torch first, pinned: a plain `torch` on Linux may bring several gigabytes of CUDA libraries.
$(STAMP): pyproject.toml constraints.txt CMakeLists.txt $(wildcard csrc/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "slimgrad needs Python 3.11 or newer; try: make PYTHON=python3.12" >&2; exit 2; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "installing into $(VENV) (once; a minute or two)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt torch numpy
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[cli,quickstart,test,lint]'
	@touch $@

clean:
	rm -rf $(VENV) build demo
