# `make run` serves the sample, `make test` passes the tests. Both set up what they need in this folder.
# Without bytecode, each process would compile all its modules again: a half of the time of most tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run run-host test setup node servers slow-servers .venv-3.13 .venv-lowest newest lint reference docs docs-versions pictures bench profile fuzz fuzz-memory differential soak soak-tasks corpus peers converters shutdown sign-in-attacks dist release constraints audit clean

# PORT=8001 takes another port than 8000, or 7071.
run: .venv/.ready
	.venv/bin/funcmcp run samples/orders/server.py $(if $(PORT),--port $(PORT))

run-host: .venv/.ready
	.venv/bin/funcmcp host samples/azure/mcp_triggers $(if $(PORT),--port $(PORT))

# What a developer runs before a commit. CI=true runs all tests, also on Python 3.13 and with the lowest versions.
test:
	$(MAKE) --no-print-directory --jobs=4 node servers $(if $(filter true,$(CI)),.venv-3.13 .venv-lowest) lint
	scripts/test.sh

setup:
	$(MAKE) --no-print-directory --jobs=3 node servers .venv-3.13 .venv-lowest

node: .venv/.ready
	scripts/setup-node.sh
	scripts/setup-browser.sh
	scripts/setup-azurite.sh

servers: .venv/.ready
	scripts/setup-redis.sh
	scripts/setup-postgres.sh
	scripts/setup-fastmcp.sh
	$(if $(filter true,$(CI)),$(MAKE) --no-print-directory slow-servers)

# What only tests marked slow need, and some tests that are skipped without it.
slow-servers:
	scripts/setup-differential.sh
	scripts/setup-docs.sh
	scripts/setup-frameworks.sh
	scripts/setup-proxies.sh
	scripts/setup-firefox.sh
	scripts/setup-converters.sh
	scripts/setup-upstreams.sh
	scripts/setup-peers.sh
	scripts/setup-dist.sh
	scripts/setup-workflows.sh
	scripts/setup-previous.sh
	scripts/setup-python-3.14.sh

# A part of the suite also runs on Python 3.13, where there is one.
.venv-3.13: .venv/.ready
	scripts/setup-python-3.13.sh

# A part of the suite runs with the lowest version of each dependency.
.venv-lowest: .venv/.ready
	scripts/setup-versions.sh lowest

# The same part with the newest version of each package, also of those that the tests use. Failures are only reported.
newest: .venv/.ready
	scripts/setup-versions.sh newest
	scripts/pass.sh .venv-newest -m lowest || echo "Some tests failed with the newest versions."

lint: .venv/.ready
	scripts/lint.sh

# docs/reference/api, from the docstrings of the public names; tables of compatibility.md, functions-host.md and sign-in-troubleshooting.md in docs/guides.
reference: .venv/.ready
	.venv/bin/python scripts/compat_trees.py
	.venv/bin/python scripts/reference.py
	.venv/bin/python -m scripts.client_rules
	.venv/bin/python -m scripts.return_contracts
	.venv/bin/python -m scripts.app_rules
	.venv/bin/python -m scripts.sign_in_failures
	.venv/bin/python -m scripts.field_reports
	.venv/bin/python -m scripts.skill

# The documentation site in .site/html. Warnings are errors. Pages whose document is gone stay there until `make clean`.
docs: reference
	scripts/setup-docs.sh
	.servers/docs/bin/python -m sphinx -W --keep-going --quiet -j auto -d .site/doctrees docs .site/html

# The documentation of each version, with a switch between them, in .site/versions.
docs-versions: .venv/.ready
	scripts/setup-docs.sh
	rm -rf .site/versions
	.venv/bin/python -m scripts.documentation_versions .site/versions

# docs/images: the output of real commands, diagrams, charts of the results of `make bench`, and the page at the endpoint in Chromium.
pictures: .venv/.ready
	.venv/bin/python scripts/pictures.py
	.venv/bin/python scripts/diagrams.py
	.venv/bin/python scripts/charts.py
	scripts/screenshots/take.sh

# On the Python of .venv, and on 3.13 where there is one.
bench: .venv/.ready .venv-3.13
	.venv/bin/python benchmarks/run.py
	if [ -f .venv-3.13/.ready ]; then .venv-3.13/bin/python benchmarks/run.py; fi

# The distributions funcmcp and funcmcp-slim in dist, checked, with a list of what they bring (SBOM), digests and an index.
dist: .venv/.ready
	scripts/setup-dist.sh
	scripts/dist.sh
	scripts/check-dist.sh

# The same for a new version (VERSION=0.2.0), after a commit that writes it and the section of the changelog.
release: .venv/.ready
	scripts/setup-dist.sh
	scripts/release.sh $(VERSION)

# distributions/constraints.txt: the version of each dependency with which `make dist` installs the distributions, and the hashes
# of its files. Of certificates (certifi) the newest are right.
constraints: .venv/.ready
	.venv/bin/python scripts/versions.py dependencies | .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
		--no-annotate --no-header --no-emit-package certifi --generate-hashes --output-file distributions/constraints.txt -

# Known vulnerabilities of these versions, from PyPI and OSV.
audit: .venv/.ready
	scripts/setup-audit.sh
	.servers/audit/bin/pip-audit --requirement distributions/constraints.txt --no-deps --disable-pip --vulnerability-service osv

# benchmarks/results/profile-VERSION: the hot path as text and as a flame graph.
profile: .venv/.ready .venv-3.13
	.venv/bin/python benchmarks/profile_calls.py
	if [ -f .venv-3.13/.ready ]; then .venv-3.13/bin/python benchmarks/profile_calls.py; fi

# FUZZ_RUNS=1000000 inputs for each target, or for those in TARGETS; the log is .fuzz/log.md, see docs/development/fuzzing.md.
fuzz: .venv/.fuzz
	.venv/bin/python -m fuzz.run $(TARGETS)

# CALLS=20000 of random tools, compared with JSON Schema, pydantic and FastMCP; SEED=N repeats a run, see
# docs/development/fuzzing.md.
differential: .venv/.ready
	scripts/setup-node.sh
	scripts/setup-differential.sh
	.venv/bin/python -m tests.differential.run $(or $(CALLS),20000) $(SEED)

# FUZZ_SECONDS=600 of one caller that tries to use up the memory of a server, see docs/development/fuzzing.md.
fuzz-memory: .venv/.ready
	.venv/bin/python -m fuzz.memory $(or $(FUZZ_SECONDS),600)

# SOAK_SECONDS=600 of mixed traffic at three instances and a real Redis that fail all the time, see docs/development/fuzzing.md.
soak: .venv/.ready
	scripts/setup-redis.sh
	.venv/bin/python -m tests.cluster.soak

# SOAK_TASKS=300 calls of tools as tasks in each storm, or in those that SOAK_STORM names, while processes, stores and
# connections fail; see docs/development/storms.md.
soak-tasks: .venv/.ready
	scripts/setup-node.sh
	scripts/setup-azurite.sh
	scripts/setup-redis.sh
	scripts/setup-postgres.sh
	SOAK_TASKS=$(or $(SOAK_TASKS),300) SOAK_STORM="$(SOAK_STORM)" .venv/bin/python -m tests.cluster.task_soak

# Published servers on their own libraries, on funcmcp and migrated; writes docs/development/corpus.md and migrate.md.
corpus: .venv/.ready
	.venv/bin/python -m tests.corpus.run
	.venv/bin/python -m tests.corpus.migration

# FastMCP's and the official SDK's own tests, on their packages and on funcmcp; writes docs/development/peers-tests.md.
# SUITES=mcp runs one of them.
peers: .venv/.ready
	scripts/setup-peers.sh
	.venv/bin/python -m tests.peers.run $(SUITES)

# Client libraries that convert the tools of servers for the APIs of models; writes docs/development/clients.md.
converters: .venv/.ready
	scripts/setup-node.sh
	scripts/setup-converters.sh
	scripts/setup-differential.sh
	.venv/bin/python -m tests.converters.run

# Servers on which a client listens, ended by signals and reloads; writes the table of docs/development/shutdown.md.
shutdown: .venv/.ready
	scripts/setup-fastmcp.sh
	.venv/bin/python -m tests.shutdown_table

# Attacks on the OAuth proxies of funcmcp and FastMCP; writes the table of docs/development/sign-in-attacks.md.
sign-in-attacks: .venv/.ready
	scripts/setup-node.sh
	scripts/setup-differential.sh
	.venv/bin/python -m tests.sign_in.comparison

.venv/.fuzz: .venv/.ready
	scripts/install.sh .venv/bin/python --group fuzz
	touch $@

.venv/.ready: pyproject.toml
	scripts/setup-python.sh .venv

clean:
	rm -rf .venv .venv-3.13 .venv-lowest .venv-newest .venv-platform .servers benchmarks/.venv* tests/node/node_modules tests/node/azurite/node_modules tests/node/converters/node_modules tests/node/python/node_modules .site .hypothesis .fuzz .corpus .coverage
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
