# Needs Python 3.10 or newer and make; everything else is installed into .venv.

PYTHON ?= python3
VENV := .venv
WORLD := .venv-world
ARGS ?=
BESIDE ?=

BIN := $(VENV)/bin

# pip's own build environments ignore -c and read these: the first up to pip 25.2, the second since.
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -c constraints.txt

# pip would compile all modules of all packages, which takes as long as to install them. Python
# compiles those that are imported, and must be allowed to keep what it has compiled.
export PYTHONDONTWRITEBYTECODE :=

# One thread for torch: the networks of the tests are too small for more.
TESTING := SDL_VIDEODRIVER=$${SDL_VIDEODRIVER:-dummy} OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1}

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test pairs real nightly lint types bench docs changelog matrix endurance conformance unseen dist clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile
	@echo 'Options go into ARGS: make test ARGS="-k infos"; make demo ARGS=--short'

demo: $(VENV)/demo.stamp  ## Train PPO on CartPole, 64 environments at once
	@$(BIN)/python docs/examples/train_cartpole.py $(ARGS)

# BESIDE="lint demo" runs these, too, beside the tests.
test: $(VENV)/dev.stamp  ## Run the tests; with ARGS, one pytest with these
ifeq ($(strip $(ARGS)),)
	@$(TESTING) $(BIN)/python -m tests.side_by_side $(BESIDE)
else
	@$(TESTING) $(BIN)/python -m pytest $(ARGS)
endif

pairs:  ## Run the tests on every supported pair of versions: docs/reference/versions.md
	@$(TESTING) $(PYTHON) -m versions $(ARGS)

real:  ## Run the training scripts of other libraries: docs/reference/training-scripts.md
	@$(TESTING) $(PYTHON) -m versions --only real $(ARGS)

# What takes one processor runs two at a time. The pairs take longest, and come last.
nightly:  ## Everything, in about two hours; writes all pages that are made from runs
	@status=0; \
	$(MAKE) --keep-going lint types demo docs || status=1; \
	export SB3COMPAT_PROFILE=nightly; \
	$(MAKE) --keep-going matrix unseen conformance || status=1; \
	$(MAKE) endurance & \
	$(MAKE) real || status=1; \
	wait $$! || status=1; \
	$(MAKE) pairs || status=1; \
	$(BIN)/python -m versions.stamps; \
	exit $$status

lint: $(VENV)/dev.stamp  ## Check style (ruff) and types (mypy)
	@$(BIN)/python -m ruff check
	@$(BIN)/python -m ruff format --check
	@$(BIN)/python -m mypy
	@$(BIN)/python -m versions.stamps --check

types: $(VENV)/types.stamp  ## Check the types of the public functions with pyright
	@$(BIN)/python -m basedpyright --level error tests/typed.py

bench: $(VENV)/dev.stamp  ## Measure; ratios, each from one interleaved run: benchmarks/RESULTS.md
ifeq ($(strip $(ARGS)),)
	@$(BIN)/python benchmarks/run.py --write
	@$(BIN)/python -m versions.stamps benchmarks/RESULTS.md
else
	@$(BIN)/python benchmarks/run.py $(ARGS)
endif

docs: $(VENV)/dev.stamp  ## Build the site into build/site, after docs/reference/checks.md
	@$(BIN)/python docs/generate.py
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -E docs build/site
	@echo 'The site: build/site/index.html'

changelog: $(VENV)/dev.stamp  ## Write the section of CHANGELOG.md that is made from changelog.d/
	@$(BIN)/python docs/changelog.py

matrix: $(VENV)/dev.stamp  ## Run every check on every mutant: docs/reference/kill-matrix.md
	@$(TESTING) $(BIN)/python -m conformance.matrix $(ARGS)

endurance: $(VENV)/dev.stamp  ## Millions of steps, a thousand faults: docs/explanation/how-it-holds-up.md
	@$(TESTING) $(BIN)/python -m endurance $(ARGS)

conformance: $(WORLD)/world.stamp  ## Run the kit on the world, and write conformance/RESULTS.md
	@$(TESTING) $(WORLD)/bin/python -W ignore -m conformance $(ARGS)

unseen: $(VENV)/dev.stamp  ## Run the kit on environments that it was not written for
	@$(TESTING) $(BIN)/python -W ignore -m conformance.specimens.unseen.judge $(ARGS)

dist: $(VENV)/dev.stamp  ## Build sdist and wheel into dist/
	@rm -rf dist
	@PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m build

clean:  ## Remove .venv, caches and builds
	rm -rf $(VENV) $(WORLD) .venv-pairs build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache learning_curve.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "sb3compat needs Python 3.10 or newer; '$(PYTHON)' is missing or older."; \
		echo "Name another one: make PYTHON=python3.11 $(MAKECMDGOALS)"; \
		exit 1; } >&2
	@$(PYTHON) -m venv --clear $(VENV) || { \
		rm -rf $(VENV); \
		echo "'$(PYTHON) -m venv' failed, see above."; \
		echo "On Debian and Ubuntu: install the package python3-venv."; \
		exit 1; } >&2
	@$(INSTALL) --upgrade pip  # the one that comes with Python 3.11 is slower

# The extra dev includes demo. pip unpacks packages on one processor, so the largest, which are half
# of all, come first, two at a time.
$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(BIN)/python
	@echo 'Installing sb3compat[dev] into $(VENV); the first time takes some minutes.'
	@$(INSTALL) --no-deps torch & $(INSTALL) --no-deps jaxlib ray pyarrow imageio-ffmpeg; wait
	@$(INSTALL) -e '.[dev]'
	@touch $(VENV)/demo.stamp $@

$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(BIN)/python
	@echo 'Installing sb3compat[demo] into $(VENV); the first time takes some minutes.'
	@$(INSTALL) -e '.[demo]'
	@touch $@

# Apart from the extra dev, as it brings along Node.js.
$(VENV)/types.stamp: $(VENV)/dev.stamp
	@$(INSTALL) -e '.[types]'
	@touch $@

# An environment of its own: Meta-World asks for an older MuJoCo.
$(WORLD)/world.stamp: pyproject.toml conformance/constraints.txt
	@echo 'Installing the packages of conformance/targets into $(WORLD); this takes some minutes.'
	@$(PYTHON) -m venv --clear $(WORLD)
	@PIP_CONSTRAINT=conformance/constraints.txt PIP_BUILD_CONSTRAINT=conformance/constraints.txt \
		$(WORLD)/bin/python -m pip install -q --disable-pip-version-check \
		-c conformance/constraints.txt -e '.[sb3,conformance,backends]' \
		supersuit 'pettingzoo[butterfly,sisl]' metaworld mo-gymnasium
	@touch $@
