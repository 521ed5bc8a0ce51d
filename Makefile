# make book     the book of the quick profile, from an empty machine to a page to open
# make test     lint and the whole test suite
# make laptop   the book of the laptop profile (an evening)
# make bench    ratios against plain and peer implementations
# make serve    JupyterLab on the notebooks
# make clean    removes what was built; computed results stay (neuronkit clean --all removes them)
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin

.PHONY: book test laptop bench serve clean

book: .venv/.installed
	$(BIN)/neuronkit build

laptop: .venv/.installed
	$(BIN)/neuronkit build --profile laptop

test: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest

bench: .venv/.installed
	for b in benchmarks/[a-z]*.py; do $(BIN)/python "$$b" || exit 1; done

serve: .venv/.installed
	$(BIN)/python -m pip install -q -c constraints.txt jupyterlab
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf _build

# uv installs in a sixth of pip's time; it reads pip's find-links only through its own variable. On Linux its
# torch backend is named, or a plain install would bring gigabytes of CUDA; with a wheel at hand that is not needed.
.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q uv
	UV_FIND_LINKS="$${PIP_FIND_LINKS:-}" $(BIN)/uv pip install -q --python $(BIN)/python \
		$${UV_TORCH_BACKEND:+--torch-backend=$$UV_TORCH_BACKEND} -c constraints.txt -e '.[book,dev]'
	touch $@
