# `make run` serves the sample, `make test` passes the tests. Both set up what they need in this folder.
.PHONY: run test setup lint bench clean
VENV := .venv
BIN := $(VENV)/bin

run: $(VENV)/.ready
	$(BIN)/funcmcp run samples/orders/server.py

test: setup lint
	scripts/test.sh

setup: $(VENV)/.ready
	scripts/setup-node.sh

lint: $(VENV)/.ready
	scripts/lint.sh

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py

$(VENV)/.ready: pyproject.toml scripts/setup-python.sh
	scripts/setup-python.sh $(VENV)
	touch $@

clean:
	rm -rf .venv .venv-3.13 tests/node/node_modules benchmarks/.venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
