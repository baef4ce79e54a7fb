#!/usr/bin/env bash
# The suite on .venv, with branch coverage of _protocol/ and _server/; a part of it with the lowest versions of dependencies;
# then the suite on .venv-3.13 if `make setup` made it.
set -euo pipefail
# Many tests wait for processes, so three workers keep two cores busy. The modules run in the order of their names: those
# with few long tests come early, and none of them runs alone at the end.
suite=(-m pytest -n 3 --dist loadscope --no-loadscope-reorder)
# Coverage doubles the CPU time of a test. These tests execute every branch of protocol/ and server/.
covered=(adapters/test_opentelemetry.py auth authoring/calling authoring/features authoring/values/test_middleware_values.py)
covered+=(client compat middleware protocol server state transports wire/test_wire_auth.py)
covered=("${covered[@]/#/tests/}" tests/test_*.py)
.venv/bin/python "${suite[@]}" --cov --cov-report=term "${covered[@]}"
.venv/bin/python "${suite[@]}" "${covered[@]/#/--ignore=}"
scripts/test-versions.sh lowest
[ -f .venv-3.13/.ready ] || exit 0
# The outcome of these tests does not depend on the Python version of the server: texts, commands, other programs, stores,
# the bytes of HTTP, the JSON of the wire, and machines that take random steps for a long time.
once=(adapters/asgi/test_application_servers.py adapters/http1/test_cycle.py adapters/postgres adapters/redis adapters/azure/test_storage.py)
once+=(adapters/azure/test_sign_ins.py adapters/azure/test_tasks.py apps architecture auth clients cluster conformance converters corpus databases differential docs fuzz oauth_proxy page pyinstaller_hooks samples sign_in transcripts)
for name in diff doctor install migrate test_arguments.py test_call.py test_call_tasks.py test_calls.py test_completion.py \
    test_connect.py test_connect_urls.py test_console.py test_host.py test_https.py test_inspect.py test_json_values.py test_log_options.py \
    test_new.py test_output.py test_read.py test_run.py test_saving.py test_server_log.py test_server_stderr.py test_server_stderr_causes.py \
    test_targets.py test_tasks.py test_tasks_postgres.py test_terminal.py; do once+=("cli/$name"); done
for name in workers/test_node.py test_custom_handler.py test_routes.py test_served_cors.py test_served_under_load.py; do
    once+=("functions_host/$name"); done
once+=(authoring/values/test_result_writer_conformance.py authoring/values/test_json_schema_for_clients.py)
for name in json_suite lists origin prompts resources round_machine secrets session_machine utilities; do once+=("wire/test_wire_$name.py"); done
for path in "${once[@]}"; do
    [ -e "tests/$path" ] || { echo "tests/$path is not there any more: remove it from scripts/test.sh." >&2; exit 1; }
done
.venv-3.13/bin/python "${suite[@]}" "${once[@]/#/--ignore=tests/}"
