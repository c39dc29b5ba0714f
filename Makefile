# The two commands of the README are `make demo` and `make test`; `make lint` is what CI adds.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_WORKERS ?= 2
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.tools
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint install clean
demo: install
	$(BIN)/slimgrad compare --recipe digits --out demo

test: $(TOOLS)
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS)

lint: $(TOOLS)
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
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || \
	  { echo "making $(VENV)"; $(PYTHON) -m venv --clear $(VENV); }
	@echo "installing torch (once; a minute or so)"
	@$(PIP) torch numpy
	@echo "building the kernels and installing slimgrad (once; a minute or so)"
	@$(PIP) -e '.[cli,quickstart]'
	@$(BIN)/python -c 'from slimgrad.kernels.backend import status as s; \
	  print("kernels:", s().reason or f"C++, {s().isa}")'
	@touch $@

# Not the package again: that would build the kernels a second time.
$(TOOLS): $(STAMP)
	@echo "installing the test tools (once)"
	@$(BIN)/python -c 'import tomllib; \
	  extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	  print(*extras["test"], *extras["lint"], sep="\n")' > $(VENV)/tools.txt
	@$(PIP) -r $(VENV)/tools.txt
	@touch $@

clean:
	rm -rf $(VENV) build demo
