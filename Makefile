# Everything a person types. The first command on a clean checkout sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup doctor reproduce figures lab test lint bench soak lock clean

PROFILE ?= embedded
PROMPTS ?=
RUN ?=
RESULTS ?= results
LLAMA_SERVER ?=
KEYS ?=

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export LAB_LLAMA_SERVER := $(LLAMA_SERVER)

help: ## this list
	@echo "make TARGET [PROFILE=embedded] [PROMPTS=file] [RUN=name] [RESULTS=folder] [LLAMA_SERVER=path] [LAB_GPU=auto]"
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1|/' | column -t -s '|'

setup: $(VENV)/engine.stamp ## virtual environment, llama.cpp and the embedded model

doctor: $(VENV)/packages.stamp ## what is there, what is missing, and what that costs
	@$(BIN)/python -m lab doctor

reproduce: setup ## measure everything again, headless; ends with the verdicts
	@$(BIN)/python -m lab reproduce --profile "$(PROFILE)" --prompts "$(PROMPTS)" --run "$(RUN)" --results "$(RESULTS)"

figures: $(VENV)/packages.stamp ## redraw the figures from recorded results, without an engine
	@$(BIN)/python -m lab figures --profile "$(PROFILE)" --run "$(RUN)" --results "$(RESULTS)"

lab: setup ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab notebooks/00_start_here.ipynb

test: setup lint ## lint, then every test but the long campaigns
	$(BIN)/python -m pytest -m "not soak"

lint: $(VENV)/packages.stamp ## ruff, mypy, notebooks without outputs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/nbstripout --keep-id --verify notebooks/*.ipynb

bench: setup ## measure the figures of docs/measured.json (KEYS="a b" picks some)
	@$(BIN)/python -m bench $(KEYS)

soak: setup ## long campaigns: random faults, thousands of requests
	$(BIN)/python -m pytest -m soak

lock: $(VENV)/packages.stamp ## make requirements.lock anew from pyproject.toml
	$(BIN)/uv pip compile --python-version 3.11 --universal --generate-hashes --no-emit-index-url --all-extras -q pyproject.toml -o requirements.lock

clean: ## remove the virtual environment, engines and models; results stay
	rm -rf $(VENV) .engine .models build *.egg-info

# llama-cpp-python comes without a llama.cpp of its own: one build serves it and the server.
$(VENV)/packages.stamp: requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@grep -A 40 '^uv==' requirements.lock | sed '/^[^u ]/,$$d' > $(VENV)/uv.lock
	@$(BIN)/python -m pip install -q --require-hashes -r $(VENV)/uv.lock
	@CMAKE_ARGS=-DLLAMA_BUILD=OFF $(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/engine.stamp: $(VENV)/packages.stamp lab/setup/build.py lab/setup/models.py cmake/lab_unity.cmake
	@$(BIN)/python -m lab setup-engine
	@touch $@
