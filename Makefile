# `make run` serves the sample, `make test` passes the tests. Both set up what they need in this folder.
.PHONY: run test setup lint bench clean

run: .venv/.ready
	.venv/bin/funcmcp run samples/orders/server.py

test: setup lint
	scripts/test.sh

setup: .venv/.ready
	scripts/setup-node.sh
	scripts/setup-browser.sh
	scripts/setup-redis.sh

lint: .venv/.ready
	scripts/lint.sh

bench: .venv/.ready
	.venv/bin/python benchmarks/run.py

.venv/.ready: pyproject.toml
	scripts/setup-python.sh .venv

clean:
	rm -rf .venv .venv-3.13 .servers benchmarks/.venv tests/node/node_modules .hypothesis .coverage
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
