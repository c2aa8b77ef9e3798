# `make sample` builds the bundled sample; `make test` runs the tests, `make test-slow` those that take long. All install
# what they need into .venv first.
# TORCH_INDEX=https://download.pytorch.org/whl/cpu gets the small torch, for machines without a GPU.

PYTHON ?= python3
RAW ?= ../shared/data/raw
JOBS ?= 2
KILLS ?= 40
PIP = .venv/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
INSTALLED = .venv/installed

.PHONY: install sample train-sample test test-slow test-real torture bench real lint clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "medi needs Python 3.11 or newer: make PYTHON=python3.11")'
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv, some minutes the first time"
	@$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) --no-deps torch)
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation --editable '.[cpu,sample,dev]'
	@touch $@

sample: $(INSTALLED)
	@.venv/bin/medi build --preset sample
	@echo "Shards: data/medi/sample/data"

# Trains MiniLM for 60 steps, some minutes on two cores: six passes over five sources, so that losses can be compared; the
# last line says how far they fell.
train-sample: sample
	@.venv/bin/medi train data/medi/sample --model all-MiniLM-L6-v2 --out data/models/sample --max-steps 60 --batch-size 32 \
	    --tasks symmetric --no-super-ni --remainder drop --save-every 20 --offline

test: $(INSTALLED)
	.venv/bin/python -m pytest -q -n $(JOBS) -m "not real and not slow"

test-slow: $(INSTALLED)
	.venv/bin/python -m pytest -q -n $(JOBS) -m "slow and not real"

test-real: $(INSTALLED)
	@if [ -d $(RAW) ]; then .venv/bin/python -m pytest -q -m real; else echo "test-real: skipped, there is no $(RAW)"; fi

# Kills builds at random moments and runs them again, some minutes; prints a table.
torture: $(INSTALLED)
	.venv/bin/python -m tests.torture --kills $(KILLS)

real: $(INSTALLED)
	.venv/bin/medi build --raw $(RAW) --super-ni-tasks all

# Times each stage beside its peers, five rounds, some hours; writes benchmarks/RESULTS.md. Nothing else should run
# meanwhile.
bench: $(INSTALLED)
	@$(PIP) 'matplotlib>=3.9'
	.venv/bin/python -m benchmarks

lint: $(INSTALLED)
	.venv/bin/ruff check .
	.venv/bin/pyright

clean:
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
