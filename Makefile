# The commands of farhand. `make` alone lists them.

PYTHON ?= python3
VENV ?= .venv
# More than a small machine has processors: browsers, deadlines and restarts are waited for half of the time.
JOBS ?= 3
PORT ?=
MODEL ?=
STORE ?=
ARGS ?=

bin := $(VENV)/bin
# A stamp is written after a successful set-up, so an interrupted one is repeated.
ready_to_run := $(VENV)/.ready-to-run
ready_to_develop := $(VENV)/.ready-to-develop
set_up_inputs := pyproject.toml scripts/set_up.sh
ts_ready := ts/node_modules/.ready
ts_inputs := $(wildcard ts/package.json ts/package-lock.json ts/packages/*/package.json ts/apps/*/package.json ts/set_up.sh)
# The packages of the CopilotKit example: half a gigabyte that nothing else needs.
copilotkit_page := examples/copilotkit/page
copilotkit_ready := $(copilotkit_page)/node_modules/.ready
# These have full branch coverage; elsewhere coverage may only rise.
covered := core calls tools
# The tests for that. Measuring doubles the work of a test, so no other test is measured. They compute and rarely wait:
# two processes at a time.
covering := tests/unit/core tests/unit/calls tests/unit/tools tests/unit/agent tests/unit/eventlog
run_tests := $(bin)/python scripts/run_tests.py
# They need the packages of the example, so they are a separate part that nothing else waits for.
copilotkit_tests := tests/browser/test_copilotkit.py tests/docs/test_copilotkit.py
# Separate parts.
elsewhere := tests/walk tests/frameworks $(copilotkit_tests)

# The demo prints how long the first start took.
began := $(shell date +%s)

# The built pages: rebuilt when one of their sources is newer than the last build.
ui_built := src/farhand/_ui/index.html
ui_inputs := $(shell find ts/packages/*/src ts/apps/web -name node_modules -prune -o -type f -print 2>/dev/null)

export PYTHON VENV
# compiled once instead of at every start of a server by the tests
unexport PYTHONDONTWRITEBYTECODE
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo ui ui-if-node quick most test check check-python check-node check-format check-lint check-types check-imports check-sizes check-names check-private check-ts check-public-types house \
        tests tests-covered tests-copilotkit tests-quick-unit tests-quick-stream tests-quick-faces tests-most tests-chaos storms tests-ts tests-ts-most tests-frameworks tests-walk test-lowest mutants format docs schema bench bench-quick lock clean

help: ## list these commands
	@echo "farhand: make <command>"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{printf "%-16s%s\n", $$1, $$2}'

demo: $(ready_to_run) ui-if-node ## start the demo on 127.0.0.1 (PORT=9000 MODEL=... STORE=... ARGS='--open')
	@took=$$(($$(date +%s) - $(began))); [ $$took -lt 3 ] || echo "demo: everything was set up in $$took s"
	@$(bin)/farhand demo $(if $(PORT),--port '$(PORT)') $(if $(MODEL),--model '$(MODEL)') \
	    $(if $(STORE),--store '$(STORE)') $(ARGS)

ui: $(ui_built) ## build the chat page and the Inspector into src/farhand/_ui (needs Node.js)

# Without Node.js, the demo starts without the pages.
ui-if-node:
	@if command -v node >/dev/null && command -v npm >/dev/null; then $(MAKE) -s --no-print-directory ui; \
	else echo "demo: no Node.js here, so the chat page is not built; the API runs, and / says how to use it"; fi

quick: $(ready_to_develop) ## unit tests and faces on the store in memory, while you work (under a minute)
	@$(bin)/python scripts/run_tier.py quick

most: $(ready_to_develop) ## every check and test except storms, sweeps, a fresh clone, other frameworks, published suites and tools on copies
	@$(bin)/python scripts/run_tier.py most

# Checks first: they are fast, and a test run says little about code that fails them.
test: $(ready_to_develop) ## run every check and every test (JOBS=3 at a time)
	@$(bin)/python scripts/run_tier.py test

check: check-python check-node ## format, lint, types, import order, sizes, names

# Two halves, so that a tier can run them side by side.
check-python: check-format check-lint check-types check-imports check-sizes check-names check-private

check-node: check-ts check-public-types

check-format: $(ready_to_develop)
	@echo "check: format"
	@$(bin)/ruff format --check .

check-lint: $(ready_to_develop)
	@echo "check: lint"
	@$(bin)/ruff check --quiet .

check-types: $(ready_to_develop)
	@echo "check: types"
	@$(bin)/mypy --no-error-summary

check-imports: $(ready_to_develop)
	@echo "check: import order"
	@$(bin)/lint-imports --no-logo

check-sizes: $(ready_to_develop)
	@echo "check: sizes"
	@$(bin)/python scripts/check_sizes.py

# Only what users import: mypy has read everything.
check-public-types: $(ready_to_develop) $(ts_ready)
	@echo "check: types of the public modules, with pyright"
	@ts/node_modules/.bin/pyright --pythonpath $(bin)/python >$(VENV)/.pyright-report || \
	    { cat $(VENV)/.pyright-report; exit 1; }

check-names: $(ready_to_develop)
	@echo "check: names"
	@$(bin)/python scripts/check_names.py

check-private: $(ready_to_develop)
	@echo "check: private parts of other libraries"
	@$(bin)/python scripts/check_private.py

check-ts: $(ts_ready)
	@echo "check: types of the TypeScript side"
	@cd ts && node_modules/.bin/tsc --noEmit --incremental --tsBuildInfoFile node_modules/.cache/tsc.tsbuildinfo

# What is only in `make test`; `storm` and the walk are parts of their own.
whole_only := storm or sweep or second_store or tools or conformance or frameworks

# Processes that each load only their own part, instead of workers that each load everything. Three on two
# processors: some tests wait.
quick := $(run_tests) -q -p no:schemathesis --hypothesis-profile=quick \
    -m 'not (postgres or sqlite or slow or repository or $(whole_only))'
# `make quick` uses none of them, and they take long to load.
not_quick := tests/unit/scripts tests/unit/test_patterns.py tests/unit/bridges/test_provider_calls.py

tests-quick-unit: $(ready_to_develop)
	@$(quick) tests/unit $(not_quick:%=--ignore=%) </dev/null

# The largest face, by itself so that no part takes much longer than the others.
tests-quick-stream: $(ready_to_develop)
	@$(quick) tests/faces/ui_stream </dev/null

tests-quick-faces: $(ready_to_develop)
	@$(quick) tests/faces --ignore=tests/faces/ui_stream </dev/null

tests-most: $(ready_to_develop) $(ui_built)
	@$(run_tests) -q -n $(JOBS) --dist worksteal $(elsewhere:%=--ignore=%) -m 'not ($(whole_only))' </dev/null

tests-covered: $(ready_to_develop)
	@echo "tests: what covers core, calls and tools"
	@$(run_tests) -q -n 2 --dist worksteal $(covering) $(covered:%=--cov=farhand.%) --cov-report= </dev/null
	@$(bin)/coverage report --include='src/farhand/core/*,src/farhand/calls/*,src/farhand/tools/*' --fail-under=100 --format=text >$(VENV)/.coverage-report || \
	    { cat $(VENV)/.coverage-report; echo "tests: core, calls and tools must be covered in every branch" >&2; exit 1; }
	@echo "tests: core, calls and tools are covered in every branch"

tests: $(ready_to_develop) $(ui_built)
	@echo "tests: all others, $(JOBS) at a time"
	@$(run_tests) -q -n $(JOBS) --dist worksteal $(elsewhere:%=--ignore=%) $(covering:%=--ignore=%) -m 'not storm' </dev/null

# The packages are downloaded while the other tests compute.
tests-copilotkit: $(ready_to_develop) $(ui_built) $(copilotkit_ready) ## run the tests of CopilotKit pages, with their packages
	@echo "tests: CopilotKit pages"
	@$(run_tests) -q $(copilotkit_tests) </dev/null

# Both at the same time, as they often wait for restarts, and with no more than one process beside them, since others
# would starve them. Longer with `make storms` or TEST_STORM_SECONDS=600; a run is repeated with the seed that it printed,
# TEST_STORM_SEED.
tests-chaos: $(ready_to_develop) ## run thousands of calls under random faults, on SQLite and on PostgreSQL
	@echo "tests: random faults"
	@$(MAKE) --no-print-directory -j2 --output-sync=target tests-chaos-postgres tests-chaos-sqlite

tests-chaos-%: $(ready_to_develop)
	@$(run_tests) tests/chaos/storm/test_$*.py -m storm -q </dev/null

# Three times as many faults of every kind and as many calls.
storms: export TEST_STORM_FAULTS ?= 150
storms: export TEST_STORM_CALLS ?= 6000
storms: tests-chaos ## the same, three times as long

# The published clients, over real connections to a server of this environment.
tests-ts: $(ts_ready) $(ready_to_develop)
	@echo "tests: AI SDK clients against farhand run"
	@cd ts && NO_COLOR=1 node_modules/.bin/vitest run --reporter=dot </dev/null

# Without those that pack the packages and compile samples: they are what the mark `tools` is for Python.
tests-ts-most: $(ts_ready) $(ready_to_develop)
	@echo "tests: AI SDK clients against farhand run"
	@cd ts && NO_COLOR=1 node_modules/.bin/vitest run --reporter=dot --exclude 'tests/packages/**' --exclude '**/types.test.ts' </dev/null

test-lowest: $(ready_to_develop) ## run the tests that depend on other libraries with their oldest allowed versions
	@echo "tests: the oldest versions that are allowed"
	@$(bin)/python -m scripts.lowest </dev/null

# In a separate environment, with the frameworks themselves. One of them: ARGS='tests/frameworks/pydantic_ai -x'
tests-frameworks: $(ready_to_develop) $(ts_ready) ## run the tests of the bridges with the frameworks they are for
	@echo "tests: bridges in other frameworks"
	@$(bin)/python -m scripts.frameworks $(ARGS) </dev/null

# What a newcomer does: sets up everything in a clone of the last commit.
tests-walk: $(ready_to_develop)
	@echo "tests: a fresh clone, make demo, the first card answered"
	@$(bin)/python -m pytest -q -s tests/walk </dev/null

# Not part of `make test`: each planted fault costs a run of the tests that must notice it.
mutants: $(ready_to_develop) ## plant one fault at a time and check that a test notices it (ARGS='lease-* --tests tests/unit')
	@$(bin)/python -m scripts.mutants $(ARGS) </dev/null

screenshots: $(ready_to_develop) $(ui_built) ## take the screenshots in docs/screenshots again
	@SCREENSHOTS=1 $(bin)/python -m pytest -q tests/browser/test_screenshots.py </dev/null

house: $(ready_to_develop) ## print figures about the readability of the source (ARGS=--list names small modules)
	@$(bin)/python -m scripts.house $(ARGS)

format: $(ready_to_develop) ## format the code and apply the linter's fixes
	@$(bin)/ruff check --quiet --fix-only .
	@$(bin)/ruff format .

docs: $(ready_to_develop) ## generate the pages that come from tables in the code
	@$(bin)/python scripts/draw_states.py
	@$(bin)/python scripts/make_limits.py
	@$(bin)/python scripts/make_errors.py
	@echo "docs: start with README.md, then docs/"

schema: $(ready_to_develop) ## write schema/ and the TypeScript types from the shapes of the wires
	@$(bin)/python scripts/make_schema.py
	@$(bin)/python scripts/make_openapi.py

bench: $(ready_to_develop) ## measure the published figures (ARGS='p1 p3' for some of them)
	@$(bin)/python -m bench $(ARGS)

bench-quick: $(ready_to_develop) ## the same, shorter and smaller, in under two minutes
	@$(bin)/python -m bench --quick $(ARGS)

lock: ## write requirements/*.txt from pyproject.toml (ARGS=--upgrade for the newest versions)
	@$(PYTHON) scripts/lock.py $(ARGS)

clean: ## remove the environment and everything generated
	rm -rf $(VENV) ts/node_modules $(copilotkit_page)/node_modules $(copilotkit_page)/dist src/farhand/_ui ts/packages/*/dist .coverage .coverage.*
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests scripts -type d -name __pycache__ -prune -exec rm -rf {} +

$(ready_to_run): requirements/run.txt $(set_up_inputs)
	@scripts/set_up.sh run
	@touch $@

# The dev lock contains the run lock, so the demo needs no other set-up afterwards.
$(ready_to_develop): requirements/dev.txt requirements/run.txt requirements/oldest-server.txt $(set_up_inputs)
	@scripts/set_up.sh dev
	@touch $(ready_to_run) $@

$(ui_built): $(ui_inputs) | $(ts_ready)
	@echo "ui: building the pages ..."
	@cd ts/apps/web && ../../node_modules/.bin/vite build --logLevel warn

$(ts_ready): $(ts_inputs)
	@ts/set_up.sh
	@touch $@

$(copilotkit_ready): $(copilotkit_page)/package.json $(copilotkit_page)/package-lock.json
	@echo "set-up: installing $(copilotkit_page)/package-lock.json ..."
	@cd $(copilotkit_page) && npm install --no-save --ignore-scripts --loglevel=error >/dev/null
	@touch $@
