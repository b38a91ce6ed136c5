# What people type. `make` alone explains itself. The work is done by scripts/provision (Python, standard library only).

# The distribution's own before what is first on the PATH: pyenv builds without profile-guided optimisation, which costs a quarter of the speed.
PYTHON ?= $(shell for p in /usr/bin/python3.11 /usr/bin/python3.12 /usr/bin/python3.13 /usr/bin/python3.14; do \
            $$p -c 'import ensurepip' 2>/dev/null && echo $$p && exit; done; \
          for p in python3.11 python3.12 python3.13 python3.14 python3; do \
            command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ARGS ?=
PROVISION = @exec $(PYTHON) -m scripts.provision
VENV = .venv/bin/python

NEEDS_VENV = @test -x $(VENV) || { echo "Nothing is set up here yet. Type:  make run" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help run models test test-all screenshots check fix demo bench soak soak-sandbox doctor requirements clean venv lock engine sandbox-image sandbox-images python

help: ## this list
	@echo "toolhub: make TARGET [ARGS=…]"; echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "%-22s %s\n", $$1, $$2}'

run: python ## set up what is missing and serve the hub on http://127.0.0.1:8000 (Ctrl-C ends it)
	$(PROVISION) run

models: python ## install a small model and an embedder that answer without key and network; the next `make run` serves them
	$(PROVISION) models

demo: ## tell the whole story over REST against a running hub
	$(NEEDS_VENV)
	@exec $(VENV) scripts/demo.py $(ARGS)

doctor: ## say what is wrong here, line by line
	$(NEEDS_VENV)
	@exec $(VENV) manage.py doctor $(ARGS)

test: python ## run the tests with PostgreSQL, Redis, Docker and Chromium (ARGS="-k consent -x" goes to pytest)
	$(PROVISION) test $(ARGS)

test-all: python ## the same, with the tests that take long
	$(PROVISION) test -m "" $(ARGS)

screenshots: python ## pictures of every page, light, dark, in Chinese, narrow, zoomed, in forced colours, without scripts, in var/screenshots
	TOOLHUB_TEST_SHOTS=$(CURDIR)/var/screenshots $(PROVISION) test -m long tests/integration/console/test_every_page.py

check: python ## style, types, imports, templates, migrations, generated files
	$(PROVISION) check

fix: python ## repair what the checks can repair themselves
	$(PROVISION) fix

bench: python ## measure, against `docker run` and a peer in the same minutes, on a PostgreSQL that waits for its disk
	$(PROVISION) measure bench $(ARGS)

soak: python ## half an hour of mixed calls on both shapes while logs are sealed and verified and keys are rotated (ARGS="--minutes 5")
	$(PROVISION) measure bench.soak_hub $(ARGS)

soak-sandbox: ## 20,000 calls through the pool, one in twenty hostile: is anything wrong, does anything grow? (needs `make sandbox-image`)
	$(NEEDS_VENV)
	@exec $(VENV) -m bench.soak_pool $(ARGS)

requirements: ## which requirements have a test, and which do not
	$(NEEDS_VENV)
	@exec $(VENV) scripts/requirements.py $(ARGS)

sandbox-image: python ## build the sandbox image if these sources have none; print its name
	$(PROVISION) sandbox-image

sandbox-images: python ## the same for tools that use a browser or Node.js (ARGS=--fresh: again, with today's packages)
	$(PROVISION) sandbox-images $(ARGS)

engine: python ## see that a Docker engine answers
	$(PROVISION) engine

venv: python ## install the Python packages, those for development too
	$(PROVISION) venv --dev

lock: python ## resolve pyproject.toml into the locks (ARGS=--upgrade for newer versions)
	$(PROVISION) lock $(ARGS)

clean: python ## remove all that `make run` and `make test` made, the hub's data too (the Docker engine stays)
	$(PROVISION) clean

python:
	@test -n "$(PYTHON)" || { echo "toolhub needs Python 3.11 or newer. On Debian 12 or Ubuntu 24.04 type:  sudo apt-get install python3" >&2; exit 1; }
