# Every target does its own set-up on Debian 12, Ubuntu 22.04 or newer; see scripts/setup.sh.
.DEFAULT_GOAL := help
SHELL := /bin/bash
BIN := .venv/bin
PYTEST_ARGS ?=

.PHONY: help demo test test-unit check format bench gpu-check clean

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 18

demo: ## set everything up, then build and verify the stack demo-cpu
	@scripts/run.sh demo

test: ## set everything up, then run all tests (real engine, registry and wheels)
	@scripts/run.sh test $(PYTEST_ARGS)

test-unit: ## the fast tests: no engine, no download, under a minute
	@scripts/setup.sh unit
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not engine and not slow and not browser" $(PYTEST_ARGS)

check: ## lint, formatting, types, shell scripts
	@scripts/setup.sh tools
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/shellcheck scripts/*.sh .ci/run

format: ## rewrite the code in the project's format
	@scripts/setup.sh tools
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: ## the benchmarks; each prints a ratio against a peer
	@scripts/run.sh bench

gpu-check: ## on a machine with an NVIDIA GPU: judge GPU_PYTHON (python3) there, keep the report in docs/evidence/
	@nvidia-smi -L >/dev/null 2>&1 || { echo "gpu-check: no NVIDIA GPU answers here, so nothing was judged" >&2; exit 5; }
	@scripts/setup.sh tools
	@$(BIN)/stackbuild verify --local --python "$${GPU_PYTHON:-python3}" --gpus all --limit 220 --format json \
		--output docs/evidence/gpu-check.json

clean: ## remove what make made here; the store in the user's cache folder stays
	rm -rf .venv dist reports .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
