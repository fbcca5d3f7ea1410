# `make demo` and `make test` need Linux, make and Python 3.12 or newer; they set up everything else themselves.
PYTHON := $(firstword $(foreach name,python3 python3.14 python3.13 python3.12,\
	$(shell $(name) -c 'import sys; sys.version_info >= (3, 12) and print("$(name)")' 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
# Containers turn it off: then each worker of the tests, and each command that they start, would compile all files anew.
export PYTHONDONTWRITEBYTECODE :=
PYTEST := $(BIN)/python -m pytest --numprocesses=auto --dist=worksteal --durations=15
# What is tried on other versions: every verb and back-end once.
SMOKE := tests/golden tests/test_smoke.py

.PHONY: demo test test-slow test-all test-versions lint frozen benchmark docs clean

demo: $(VENV)/.installed
	$(BIN)/raters audit raters/datasets/anesthesia.csv --item patient --rating rating --annotator rater

test: $(VENV)/.tested
	$(PYTEST) -m "not slow"

# What `make test` leaves out, but for notebooks and the longest statistics; CI runs the part that it names in IN.
test-slow: $(VENV)/.tested
	$(PYTEST) -m "slow and not exhaustive" $(IN)

test-all: $(VENV)/.tested
	$(PYTEST)

# The lowest versions of the dependencies, and the newest on Python 3.13 where it is there.
test-versions: $(VENV)/.installed
	$(BIN)/pip install --quiet uv
	for case in "lowest-direct $(PYTHON)" "highest python3.13"; do \
		set -- $$case; \
		$$2 -c "" 2>/dev/null || { echo "no $$2"; continue; }; \
		$$2 -m venv --clear $(VENV)-$$1 && \
		VIRTUAL_ENV=$(VENV)-$$1 $(BIN)/uv pip install --quiet --resolution $$1 --editable '.[test]' && \
		$(VENV)-$$1/bin/python -m pytest -p no:cacheprovider -W default $(SMOKE) || exit 1; \
	done

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Draws, facts of audits and golden numbers are those stored before; the first two on one machine.
frozen: $(VENV)/.tested
	$(BIN)/python benchmarks/frozen.py
	$(BIN)/python -m pytest tests/golden

# Scripts that read data sets run where the folder is there; frozen.py holds for one machine only.
benchmark: $(VENV)/.installed
	$(BIN)/pip install --quiet --editable '.[benchmark]'
	data=$${RATERS_DATA:-../shared/data}; failed=; \
	for script in benchmarks/[!_]*.py; do \
		arguments=; \
		case $$script in \
			*/frozen.py) continue ;; \
			*/acquisition_replay.py|*/reading_level.py) test -d "$$data" || continue ;; \
			*/takeover.py|*/families.py|*/rating_scales.py|*/known_qualities.py) test ! -d "$$data" || arguments="--data $$data" ;; \
			*) ! grep -q "data=(" "$$script" || { test -d "$$data" || continue; arguments="--data $$data"; } ;; \
		esac; \
		RATERS_DATA=$$data $(BIN)/python $$script $$arguments || failed="$$failed $$script"; \
	done; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

$(VENV)/bin/pip:
	@test -n "$(PYTHON)" || { echo "raters needs Python 3.12 or newer; found: $$(python3 --version 2>&1)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/pip pyproject.toml
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-* raters-audit docs/_build
