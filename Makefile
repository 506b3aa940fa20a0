# make demo: set-up, and the three main jobs.  make test: set-up and tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The processes of the tests read one another's bytecode, whatever the shell says.
test test-slow test-newest fuzz: export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-slow test-newest fuzz coverage lint docs bench notebooks reproduction shipped shipped-simulated sample clean

demo: $(READY)
	$(BIN)/mlscale demo -o out/demo

test: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow'

# Whole studies on real measurements, notebooks, killed processes.
test-slow: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m slow

# Of every library the newest version that pyproject.toml allows; but of torch the pinned one, as the
# newest may be a build for CUDA of some gigabytes.
test-newest:
	$(PYTHON) -m venv --clear $(VENV)-newest
	grep '^torch=' constraints.txt > $(VENV)-newest/torch.txt
	$(VENV)-newest/bin/pip install --quiet --disable-pip-version-check -c $(VENV)-newest/torch.txt \
	  -e '.[dev]'
	$(VENV)-newest/bin/pytest -n 2 --dist worksteal

# Random examples, ten times as many as the tests have; SEED=… repeats a run.
SEED ?= $(shell date +%s)
fuzz: $(READY)
	for seed in $$(seq $(SEED) $$(($(SEED) + 9))); do \
	  echo "make fuzz SEED=$$seed"; \
	  $(BIN)/pytest -q -n 2 --dist worksteal -m hypothesis --hypothesis-profile=fuzz \
	    --hypothesis-seed=$$seed || exit 1; \
	done

coverage: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=term

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md docs mlscale
	$(BIN)/python tools/prose.py

# Every warning, broken link, unknown reference and changed output of a command fails.
docs: $(READY)
	$(BIN)/python -m sphinx -q -n -W --keep-going -d out/site-doctrees docs out/site

bench: $(READY)
	$(BIN)/python benchmarks

# The claims and figures of the four papers, into out/reproduction, and how far off runs are;
# MLSCALE_DATA: a folder with the files.
reproduction: $(READY)
	for paper in wu2015 wang_chu2018 volkov2018 nagasaka2010; do \
	  $(BIN)/python reproduction/$$paper.py || exit 1; \
	done
	$(BIN)/python reproduction/runs.py
	$(BIN)/python reproduction/servers.py
	$(BIN)/python reproduction/tune.py

# Runs the tutorials anew, in place.
notebooks: $(READY)
	$(BIN)/python tools/run_notebooks.py notebooks notebooks/*.ipynb

# Trains the models that learnt from public measurements; MLSCALE_DATA: a folder with the files.
shipped: $(READY)
	PYTHONPATH=reproduction $(BIN)/python tools/train_shipped.py
	$(BIN)/mlscale train datasets/h100-suite.csv --base cu=132 -o models/h100-sms.mlscale

# The sample of a page, of the training step.
sample:
	$(BIN)/mlscale report datasets/training-step-ncu.csv datasets/training-step-trace.json.gz \
	  --power datasets/training-step-power.csv --base engine=1410,memory=1593 \
	  -o docs/sample-report.html

# Makes the simulated data and their model anew; RAW is the raw table of the simulated set.
shipped-simulated: $(READY)
	$(BIN)/python tools/make_shipped.py $(RAW)
	$(BIN)/mlscale train datasets/simulated-gcn3.parquet --base cu=16,engine=800,memory=700 \
	  --leave-out fastwalshtransform -o models/simulated-gcn3.mlscale

clean:
	rm -rf $(VENV) $(VENV)-newest out build dist

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mlscale needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@
