# climate: everything from nothing but Python 3.11 with pip, and make.  `make` alone lists what there is.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help run lab demo test test-slow test-by-url campaign test-netlab test-tempest test-keystone test-openstack lint fix docs vendor screenshots bench bench-compare lock dist wheels clean

PY ?= python3
VENV := .venv
TEMPEST := .venv-tempest
KEYSTONE := .venv-keystone
OPENSTACK := .venv-openstack
BIN := $(VENV)/bin
UV := $(shell uv --version >/dev/null 2>&1 && command -v uv)
ARGS ?=
DIST ?= dist
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Where a user's settings forbid it, each of the many processes of a test run would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

run: $(VENV)/installed ## run climate with a small demo cloud: http://127.0.0.1:8000, Ctrl-C stops it
	@exec $(BIN)/climate up --demo $(ARGS)

lab: $(VENV)/installed ## the same with real networks, among hosts that are namespaces; ordinary users may, on most systems
	@exec $(BIN)/climate lab $(ARGS)

demo: $(VENV)/installed ## show leases from end to end, recycling and power saving, each step verified; less than a minute
	@exec $(BIN)/climate demo $(ARGS)

# Whole modules go to each of several processes, the longest first.
BY_MODULE := --dist loadfile --no-loadscope-reorder
TWO := -n 2 $(BY_MODULE)
# One more than there are cores: a test that waits for a process, a time-out or a client leaves its core to another.
THREE := -n 3 $(BY_MODULE)

# Each worker collects all modules; those that only have slow tests import and generate the most.
QUICK := -p no:schemathesis --ignore-glob='tests/slow/test_schemathesis*'
ORDINARY := -m 'not slow and not campaign' $(QUICK)

test: $(VENV)/installed-dev ## run the tests
	$(BIN)/python -m pytest $(THREE) $(ORDINARY) $(ARGS)

# What depends on the version of the server most: statements, locks, claims, migrations.
BY_URL := tests/store tests/migrations tests/runner/test_by_url.py tests/service/events/test_events.py \
	tests/service/leases/test_leases.py tests/service/journal/test_consistency_check.py $(patsubst %,tests/scenarios/test_%.py,races \
	event_order late_workers duplicate_delivery statement_counts capacity_races floating_ip_races storage_races)

test-by-url: $(VENV)/installed-dev ## run the tests of the stores on CLIMATE_TEST_DATABASE_URL and CLIMATE_TEST_REDIS_URL
	$(BIN)/python -m pytest $(TWO) -m '(not slow or by_url) and not campaign' $(QUICK) $(BY_URL) $(ARGS)

test-slow: $(VENV)/installed-dev ## run the tests that take minutes, each for a short while
	$(BIN)/python -m pytest $(THREE) -m 'slow and not campaign and not by_url' $(ARGS)

campaign: $(VENV)/installed-dev $(OPENSTACK)/installed ## run the long tests at full length, and write the results to docs/campaign.md
	$(BIN)/python -m tests.campaign $(ARGS)

test-netlab: $(VENV)/installed-dev ## run the tests of real networks, in a sandbox that vanishes with them
	$(BIN)/python -m pytest --netlab -m netlab tests/netlab $(ARGS)

test-tempest: $(VENV)/installed-dev $(TEMPEST)/installed ## run OpenStack's Tempest against climate: ARGS='blazar compute'
	$(BIN)/python -m tests.tempest $(ARGS)

test-keystone: $(VENV)/installed-dev $(KEYSTONE)/installed ## run the tests that need a real Keystone
	$(BIN)/python -m pytest tests/real_keystone $(ARGS)

test-openstack: $(VENV)/installed-dev $(OPENSTACK)/installed ## run leases on a real OpenStack, which is installed once from PyPI
	$(BIN)/python -m pytest -m campaign tests/real_openstack $(ARGS)

lint: $(VENV)/installed-dev ## check style, types, who imports whom, and the complexity of functions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.complexity

fix: $(VENV)/installed-dev ## correct what can be corrected by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-dev ## write the tables of settings and commands into docs/
	$(BIN)/python -m tests.generated_pages

vendor: ## copy the scripts of others that the pages use, as tests/vendor/package-lock.json names them (needs npm)
	@command -v npm >/dev/null || { echo 'make vendor needs npm: https://nodejs.org/' >&2; exit 1; }
	$(PY) tests/vendor/copy_files.py

screenshots: $(VENV)/installed-dev ## take the pictures of the web pages in docs/images (needs chromium)
	$(BIN)/python -m tests.screenshots

bench: $(VENV)/installed-dev ## measure; prints medians
	$(BIN)/python -m benchmarks $(ARGS)

bench-compare: $(VENV)/installed-dev ## measure REF=<commit> and this one by turns; prints ratios
	$(BIN)/python -m benchmarks.compare $(REF) $(ARGS)

lock: ## choose the versions anew, within the ranges of pyproject.toml (needs uv)
	@command -v uv >/dev/null || { echo 'make lock needs uv: https://docs.astral.sh/uv/' >&2; exit 1; }
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' \
		--extra build --extra net pyproject.toml -o requirements.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' \
		--extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' \
		tests/tempest/requirements.in -o tests/tempest/requirements.lock
	uv pip compile -q --python-version 3.11 --generate-hashes --custom-compile-command 'make lock' \
		tests/real_openstack/requirements.in -o tests/real_openstack/requirements.lock

dist: $(VENV)/installed ## build wheel and sdist into dist/
	$(BIN)/python -m hatchling build -d $(DIST)

wheels: $(VENV)/installed ## put the wheels of climate and of what it needs into dist/wheels, to install without network
	$(BIN)/python -m hatchling build -t wheel -d $(DIST)/wheels
	$(PY) -m pip download -q --only-binary :all: --no-deps --require-hashes -r requirements.lock -d $(DIST)/wheels

clean: ## remove what make has made; the data in ./var stays
	rm -rf $(VENV) $(TEMPEST) $(KEYSTONE) $(OPENSTACK) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# venv without pip, and the outer pip working into it: Debian's python3-pip brings no ensurepip.
$(BIN)/python:
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'climate needs Python 3.11 or newer, and $(PY) is not: install it (Debian, Ubuntu: apt install python3 python3-pip),' \
			'or say which one to use: make PY=/path/to/python3.11' >&2; exit 1; }
	@test -n '$(UV)' || $(PY) -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3))' 2>/dev/null || { \
		echo '$(PY) has no pip 22.3 or newer: install it (Debian, Ubuntu: apt install python3-pip), or install uv' >&2; exit 1; }
	$(PY) -m venv --without-pip $(VENV)

# $(call install,LOCK): exactly the locked files, then climate itself as it lies here.
install = $(leave_former) $(call into_venv,--require-hashes -r $(1)) && $(call into_venv,--no-deps --no-build-isolation -e .)
# The distribution was named `climate` before; beside it each entry point would be there twice.
FORMER = $(wildcard $(VENV)/lib/python3*/site-packages/climate-[0-9]*.dist-info)
leave_former = $(if $(FORMER),$(from_venv) climate &&)
from_venv = $(if $(UV),$(UV) pip uninstall -q --python $(BIN)/python,$(PY) -m pip --python $(BIN)/python uninstall -q -y)
into_venv = $(if $(UV),$(UV) pip install -q $(COMPILE) --python $(BIN)/python,$(PY) -m pip --python $(BIN)/python install -q) $(1)

$(VENV)/installed: pyproject.toml requirements.lock | $(BIN)/python
	@echo "Installing the $$(grep -c '^[a-z0-9].*==' requirements.lock) packages that climate needs into $(VENV);" \
		'once, about a minute with pip, seconds with uv ...'
	@$(call install,requirements.lock)
	@echo 'Installed.'
	@touch $@

# Tempest's own requirements would conflict with those of the tests.
$(TEMPEST)/bin/python: | $(BIN)/python
	$(PY) -m venv --without-pip $(TEMPEST)

$(TEMPEST)/installed: BIN := $(TEMPEST)/bin
$(TEMPEST)/installed: tests/tempest/requirements.lock | $(TEMPEST)/bin/python
	@echo 'Installing Tempest into $(TEMPEST) (once) ...'
	@$(call into_venv,--require-hashes -r tests/tempest/requirements.lock)
	@touch $@

$(KEYSTONE)/bin/python: | $(BIN)/python
	$(PY) -m venv --without-pip $(KEYSTONE)

$(KEYSTONE)/installed: BIN := $(KEYSTONE)/bin
$(KEYSTONE)/installed: tests/real_keystone/requirements.txt | $(KEYSTONE)/bin/python
	@echo 'Installing Keystone into $(KEYSTONE) (once) ...'
	@$(call into_venv,-r tests/real_keystone/requirements.txt)
	@touch $@

# The services of an OpenStack, and Nova's filter; Debian's packages mariadb-server and rabbitmq-server run their stores.
$(OPENSTACK)/bin/python: | $(BIN)/python
	$(PY) -m venv --without-pip $(OPENSTACK)

$(OPENSTACK)/installed: BIN := $(OPENSTACK)/bin
$(OPENSTACK)/installed: tests/real_openstack/requirements.lock deploy/nova-filter/climate_nova_filter.py | $(OPENSTACK)/bin/python
	@echo 'Installing OpenStack into $(OPENSTACK) (once) ...'
	@$(call into_venv,--require-hashes -r tests/real_openstack/requirements.lock)
	@$(call into_venv,--no-deps --no-build-isolation --force-reinstall ./deploy/nova-filter)
	@touch $@

# uv compiles only when told to, and each of the processes of a test run would compile all that it imports.
$(VENV)/installed-dev: COMPILE := --compile-bytecode
$(VENV)/installed-dev: pyproject.toml requirements-dev.lock | $(BIN)/python
	@echo 'Installing what the tests need into $(VENV) (once) ...'
	@$(call install,requirements-dev.lock)
	@touch $(VENV)/installed $@
