"""The folders of tests mirror the packages: tests of `src/funcmcp/_a/b.py` are in `tests/a/test_b.py`.

A file `tests/a/test_b_<subject>.py` also belongs to this module. `EXCEPTIONS` has all other files.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from tests.architecture.trees import is_written_by_a_script

ROOT = Path(__file__).parents[2]
PACKAGES = {
    Path("src/funcmcp"): Path(),
    Path("src/funcmcp_cli"): Path("cli"),
    Path("src/funcmcp_host"): Path("functions_host"),
}
"""The packages, and the folders of their tests."""
TESTS = Path("tests")

BESIDE_THE_MIRROR = {
    "apps": "MCP Apps in a browser's sandbox",
    "architecture": "imports, names and files of the package",
    "azure": "function apps in Microsoft's worker library",
    "clients": "official clients",
    "cluster": "several processes and Redis",
    "conformance": "the official conformance suite",
    "converters": "client libraries that convert tools for the APIs of models",
    "corpus": "servers written for other frameworks",
    "databases": "calls that write to real databases",
    "differential": "random tools against JSON Schema, pydantic and FastMCP",
    "docs": "code and tables in the documentation",
    "fuzz": "the fuzz targets",
    "loops": "one server in the event loops of test frameworks, threads and notebooks",
    "page": "the page at the endpoint in a browser",
    "peers": "the tests of FastMCP and the official SDK",
    "proxy": "proxies in front of published, scripted and hostile servers",
    "release": "the scripts and workflows that make a release",
    "python_3_14": "parts of the suite in WebAssembly",
    "samples": "the samples",
    "sign_in": "attacks on a sign-in with a proxy, and clients that sign in",
    "transcripts": "recorded conversations",
    "upgrades": "two versions with the same stores, and beside each other",
    "wire": "the rules of the specification, as a client observes them",
}
"""Folders whose tests run several modules together, and what they test."""

EXCEPTIONS = {
    "src/funcmcp/_compat/component_features.py": "tests/compat/test_components",
    "src/funcmcp/_compat/listed_components.py": "tests/compat/test_components and test_live_components",
    "src/funcmcp/_compat/resource_kinds.py": "tests/compat/test_components",
    "src/funcmcp/_compat/server_contexts.py": "tests/compat/test_context",
    "src/funcmcp/_compat/server_registration.py": "tests/compat/test_server",
    "src/funcmcp/_compat/input_required.py": "tests/compat/test_input_rounds",
    "src/funcmcp/_compat/app_addresses.py": "tests/compat/test_apps",
    "src/funcmcp/_compat/sdk_errors.py": "tests/compat/test_sdk_server",
    "src/funcmcp/_compat/sdk_features.py": "tests/compat/test_sdk_server",
    "src/funcmcp/_compat/sdk_managers.py": "tests/compat/test_sdk_server",
    "src/funcmcp/_compat/content_blocks.py": "tests/compat/test_tool_output and test_content",
    "src/funcmcp/_compat/typed_dicts.py": "tests/compat/test_server and test_tool_output",
    "src/funcmcp/_compat/schema_merging.py": "tests/compat/test_tool_transforms",
    "src/funcmcp/_compat/serialization.py": "tests/compat/test_tool_output",
    "src/funcmcp/_compat/tool_registration.py": "tests/compat/test_tool_output",
    "src/funcmcp/_auth/tokens/presented.py": "tests/auth/tokens/test_bearer and test_introspection",
    "tests/authoring/test_type_tables.py": "It tests the type tables of the first design in all layers.",
    "tests/cli/test_call.py": "It runs a command in a process of its own, with most modules of the package.",
    "tests/cli/test_call_tasks.py": "It runs a command in a process of its own, with most modules of the package.",
    "tests/cli/test_https.py": "It runs `funcmcp run` with a certificate in a process of its own.",
    "tests/cli/test_inspect.py": "It runs a command in a process of its own, with most modules of the package.",
    "tests/cli/test_read.py": "It runs two commands in processes of their own, with most modules of the package.",
    "tests/cli/test_reload.py": "It runs `funcmcp run` in a process of its own and sends SIGHUP.",
    "tests/cli/test_unix_socket.py": "It runs `funcmcp run --uds` in a process of its own.",
    "tests/cli/test_run.py": "It runs a command in a process of its own, with most modules of the package.",
    "tests/client/test_client_methods.py": "It tests the methods of the public client in memory, through all layers.",
    "tests/client/test_resumption.py": "It tests event streams that break, with the public client, through all layers.",
    "tests/upstreams/test_hostile_messages.py": "It tests messages of broken upstreams, through all layers.",
    "tests/upstreams/test_children.py": "It tests upstreams on stdio with real processes, through all layers.",
    "tests/upstreams/test_failures.py": "It tests failures of upstreams over HTTP, through all layers.",
    "tests/upstreams/test_telemetry.py": "It tests spans and metrics of requests to upstreams, through all layers.",
    "src/funcmcp/_authoring/calling/question_time.py": "tests/authoring/calling/test_confirmation",
    "src/funcmcp/_client/orphans.py": "tests/upstreams/test_children",
    "src/funcmcp/_upstreams/connection.py": "tests/upstreams/test_failures",
    "src/funcmcp/_client/http_messages.py": "tests/client/test_http_exchange",
    "src/funcmcp/_upstreams/metadata.py": "tests/upstreams/test_forwarding",
    "src/funcmcp/_upstreams/running.py": "tests/upstreams/test_hostile_messages",
    "src/funcmcp/_upstreams/upstream_request.py": "tests/upstreams/test_forwarding",
    "src/funcmcp/_upstreams/limits.py": "tests/upstreams/test_status",
    "src/funcmcp/_upstreams/sessions.py": "tests/upstreams/test_links",
    "tests/pyinstaller_hooks/test_frozen_server.py": "It tests the hooks with PyInstaller.",
    "tests/testing/test_testing.py": "It tests the names of the package itself.",
    "tests/test_request_log.py": "It tests _serving/request_log.py; tests/serving.py has the name of its folder.",
    "src/funcmcp/_serving/request_log.py": "tests/test_request_log",
    "tests/test_schemas.py": "It tests tests/schemas.py, which other tests use.",
    "tests/transports/http/test_buffered.py": "It tests the endpoints on platforms that do not stream.",
    "tests/transports/http/test_stateless.py": "It tests the endpoints without sessions.",
    "tests/transports/test_asgi_servers.py": "It tests HTTP+SSE and WebSocket under several ASGI servers.",
    "tests/transports/test_known_callers.py": "It tests authentication on HTTP+SSE, WebSocket and stdio.",
    "tests/transports/test_limited_connections.py": "It tests limits on HTTP+SSE, WebSocket and stdio.",
    "src/funcmcp/_providers/remote.py": "tests/upstreams/test_features",
    "src/funcmcp/_upstreams/upstream.py": "tests/upstreams/test_features",
    "src/funcmcp_host/durable/app.py": "tests/functions_host/durable/test_management",
    "src/funcmcp_host/durable/instances.py": "tests/functions_host/durable/test_turn",
    "src/funcmcp_host/durable/listener.py": "tests/functions_host/durable/test_management",
    "src/funcmcp_cli/hidden_characters.py": "tests/cli/test_pin",
    "src/funcmcp/_pyinstaller_hooks/folder.py": "tests/pyinstaller_hooks/test_frozen_server",
    "src/funcmcp/_pyinstaller_hooks/hook-funcmcp.py": "tests/pyinstaller_hooks/test_frozen_server",
    "src/funcmcp/__main__.py": "It calls funcmcp_cli/main.py, which tests/cli/test_main runs.",
    "src/funcmcp_cli/client_rules/checks.py": "tests/cli/client_rules/test_rules",
    "src/funcmcp_cli/client_rules/subjects.py": "tests/cli/client_rules/test_problems",
    "src/funcmcp/_adapters/asgi/in_process_calls.py": "tests/adapters/asgi/test_openapi_tools",
    "src/funcmcp/_adapters/asgi/websocket.py": "tests/transports/test_websocket and test_asgi_servers",
    "src/funcmcp/_adapters/azure/app_functions.py": "tests/azure/test_http_app",
    "src/funcmcp/_adapters/azure/http_trigger.py": "tests/azure/test_http_app",
    "src/funcmcp/_adapters/azure/triggers/extra_bindings.py": "tests/azure/test_triggers_in_worker",
    "src/funcmcp/_adapters/azure/triggers/registration.py": "tests/azure/test_triggers_in_worker",
    "src/funcmcp/_processes/uvicorn_server.py": "tests/processes/test_server",
    "src/funcmcp/_state/tasks/any_store.py": "tests/state/tasks/test_memory and test_sqlite",
    "src/funcmcp/_adapters/azure/worker_lifetime.py": "tests/azure/test_http_app",
    "src/funcmcp/_adapters/postgres/presence.py": "tests/adapters/postgres/test_tasks",
    "src/funcmcp/_adapters/redis/revocations.py": "tests/adapters/redis/test_sessions and test_link",
    "src/funcmcp/_adapters/redis/task_records.py": "tests/adapters/redis/test_tasks",
    "src/funcmcp/_adapters/redis/task_scripts.py": "tests/adapters/redis/test_tasks",
    "src/funcmcp/_adapters/redis/bus.py": "tests/adapters/redis/test_sessions and tests/cluster",
    "src/funcmcp/_adapters/http1/httptools_parser.py": "tests/adapters/http1/test_parser runs both parsers.",
    "src/funcmcp/_auth/owner.py": "tests/auth/test_principal",
    "src/funcmcp/_auth/policy.py": "tests/server/test_authorization and tests/wire/test_wire_auth",
    "src/funcmcp/_auth/well_known.py": "tests/auth/test_protected_resource",
    "src/funcmcp/_oauth_proxy/access_tokens.py": "tests/oauth_proxy/test_proxy",
    "src/funcmcp/_oauth_proxy/clients.py": "tests/oauth_proxy/test_proxy and tests/sign_in/test_attacks",
    "src/funcmcp/_oauth_proxy/refresh_tokens.py": "tests/oauth_proxy/test_flows and test_stored_sign_ins",
    "src/funcmcp/_oauth_proxy/redirect_uris.py": "tests/oauth_proxy/test_proxy and tests/sign_in/test_attacks",
    "src/funcmcp/_oauth_proxy/settings.py": "tests/sign_in/test_attacks",
    "src/funcmcp/_oauth_proxy/sign_in.py": "tests/sign_in/test_attacks",
    "src/funcmcp/_oauth_proxy/web.py": "tests/oauth_proxy/test_proxy and tests/sign_in/test_attacks",
    "src/funcmcp/_serving/local_sign_in.py": "tests/cli/test_local_sign_in",
    "src/funcmcp/testing/_rules.py": "tests/testing/test_state_stores and tests/testing/test_task_stores",
    "src/funcmcp/testing/_cassette_server.py": "tests/testing/test_pytest_plugin and tests/client/test_bridge",
    "src/funcmcp/_authoring/calling/uploaded_file.py": "tests/transports/http/endpoints/test_uploads",
    "src/funcmcp/_serving/upload_features.py": "tests/transports/http/endpoints/test_uploads",
    "src/funcmcp/_authoring/calling/prompt_call.py": "tests/authoring/features/test_prompts",
    "src/funcmcp/_authoring/calling/resource_read.py": "tests/authoring/features/test_resources",
    "src/funcmcp/_authoring/calling/tool_call.py": "tests/authoring/calling/test_function_call",
    "src/funcmcp/_authoring/features/options.py": "tests/authoring/features/test_tools",
    "src/funcmcp/_authoring/features/registration_checks.py": "tests/authoring/features/test_tools and test_prompts",
    "src/funcmcp/_authoring/openapi/http_requests.py": "tests/authoring/openapi/test_operations",
    "src/funcmcp/_authoring/openapi/http_responses.py": "tests/adapters/asgi/test_openapi_tools",
    "src/funcmcp/_authoring/openapi/schemas.py": "tests/authoring/openapi/test_operations",
    "src/funcmcp/_authoring/openapi/references.py": "tests/authoring/openapi/test_operations",
    "src/funcmcp/_adapters/openapi/operation_tools.py": "tests/adapters/openapi/test_remote_tools",
    "src/funcmcp/_authoring/signatures/annotations.py": "tests/authoring/signatures/test_signature",
    "src/funcmcp/_authoring/schemas/json_values.py": "tests/authoring/features/test_tools and test_resources",
    "src/funcmcp/_authoring/results/prompt_results.py": "tests/authoring/features/test_prompts",
    "src/funcmcp/_authoring/schemas/pydantic_argument_schemas.py": "tests/authoring/calling/test_arguments",
    "src/funcmcp/_authoring/schemas/pydantic_result_schemas.py": "tests/authoring/results/test_tool_results",
    "src/funcmcp/_authoring/results/resource_contents.py": "tests/authoring/features/test_resources",
    "src/funcmcp/_transports/http/endpoints/application_response.py": "tests/compat/test_transports_custom_routes",
    "src/funcmcp/azure.py": "tests/azure",
    "src/funcmcp/http.py": "tests/transports/http/endpoints/test_custom_routes",
    "src/funcmcp/_client/process_group.py": "tests/client/test_stdio and functions_host/workers",
    "src/funcmcp_cli/client_commands.py": "tests/cli/test_inspect, test_call and test_read",
    "src/funcmcp_cli/commands.py": "tests/cli runs each command in a process of its own.",
    "src/funcmcp_cli/doctor/app_checks.py": "tests/cli/doctor/test_examine",
    "src/funcmcp_cli/doctor/file_checks.py": "tests/cli/doctor/test_examine",
    "src/funcmcp_cli/doctor/probe.py": "tests/cli/doctor/test_examine",
    "src/funcmcp_cli/doctor/project.py": "tests/cli/doctor/test_examine",
    "src/funcmcp_cli/failure.py": "tests/cli/test_targets",
    "src/funcmcp_cli/faults.py": "tests/cli/test_run",
    "src/funcmcp_cli/diff/differences.py": "tests/cli/diff/test_schemas and test_compare",
    "src/funcmcp_cli/diff/snapshots.py": "tests/cli/diff/test_command",
    "src/funcmcp_cli/migrate/notes.py": "tests/cli/migrate/test_command",
    "src/funcmcp_cli/migrate/python_values.py": "tests/cli/migrate/test_server_notes",
    "src/funcmcp_cli/migrate/sentences.py": "tests/cli/migrate/test_compat_names",
    "src/funcmcp_cli/show.py": "tests/cli/test_inspect",
    "src/funcmcp_cli/function_app.py": "tests/cli/test_host",
    "src/funcmcp/_providers/mounted_callers.py": "tests/providers/test_provided",
    "src/funcmcp/_server/calls/resolving.py": "tests/compat/test_provider",
    "src/funcmcp/_compat/annotations.py": "tests/compat/test_server",
    "src/funcmcp/_compat/completion.py": "tests/compat/test_server",
    "src/funcmcp/_compat/direct_runs.py": "tests/compat/test_components and test_sdk_components",
    "src/funcmcp/_compat/editable.py": "tests/compat/test_middleware",
    "src/funcmcp/_compat/elicitation.py": "tests/compat/test_context",
    "src/funcmcp/_compat/errors.py": "tests/compat/test_server",
    "src/funcmcp/_compat/functions.py": "tests/compat/test_server and test_dependencies",
    "src/funcmcp/_compat/loggers.py": "tests/compat/test_server",
    "src/funcmcp/_compat/middleware_adapters.py": "tests/compat/test_middleware",
    "src/funcmcp/_compat/middleware_messages.py": "tests/compat/test_middleware",
    "src/funcmcp/_compat/middleware_switch.py": "tests/compat/test_middleware",
    "src/funcmcp/_compat/notification_hooks.py": "tests/compat/test_middleware",
    "src/funcmcp/_server/notifications.py": "tests/compat/test_middleware",
    "src/funcmcp/_compat/features_as_tools.py": "tests/compat/test_transforms",
    "src/funcmcp/_server/catalog/feature_view.py": "tests/compat/test_transform_view",
    "src/funcmcp/_compat/server_lists.py": "tests/compat/test_versions and test_session_visibility",
    "src/funcmcp/_compat/file_discovery.py": "tests/compat/test_file_provider",
    "src/funcmcp/_compat/openapi_arguments.py": "tests/compat/test_openapi",
    "src/funcmcp/_compat/openapi_components.py": "tests/compat/test_openapi",
    "src/funcmcp/_compat/openapi_provider.py": "tests/compat/test_openapi",
    "src/funcmcp/_compat/local_provider.py": "tests/compat/test_provider",
    "src/funcmcp/_compat/provider_features.py": "tests/compat/test_provider",
    "src/funcmcp/_compat/provider_server.py": "tests/compat/test_provider",
    "src/funcmcp/_compat/server_provider.py": "tests/compat/test_provider",
    "src/funcmcp/_compat/shelf.py": "tests/compat/test_provider",
    "src/funcmcp/_compat/standalone.py": "tests/compat/test_file_provider",
    "src/funcmcp/_compat/skill_entries.py": "tests/compat/test_agent_skills",
    "src/funcmcp/_compat/component_fields.py": "tests/compat/test_components",
    "src/funcmcp/_compat/pages.py": "tests/compat/test_apps",
    "src/funcmcp/_compat/request_parts.py": "tests/compat/test_dependencies",
    "src/funcmcp/_compat/result_types.py": "tests/compat/test_server",
    "src/funcmcp/_compat/sampling.py": "tests/compat/test_context",
    "src/funcmcp/_compat/server_settings.py": "tests/compat/test_server and test_options",
    "src/funcmcp/_state/caller_state.py": "tests/test_state",
    "src/funcmcp/_authoring/calling/state_access.py": "tests/test_state",
    "src/funcmcp_host/app_rules/access_rules.py": "tests/cli/doctor/test_rule_checks",
    "src/funcmcp_host/app_rules/handler_rules.py": "tests/cli/doctor/test_rule_checks",
    "src/funcmcp_host/app_rules/model.py": "tests/functions_host/app_rules/test_table",
    "src/funcmcp_host/app_rules/rule.py": "Types only; tests/functions_host/app_rules/test_table has uses.",
    "src/funcmcp_host/app_rules/setting_rules.py": "tests/cli/doctor/test_rule_checks",
    "src/funcmcp_host/app_rules/trigger_rules.py": "tests/cli/doctor/test_rule_checks",
    "src/funcmcp_host/features.py": "tests/functions_host/test_served",
    "src/funcmcp_host/handler_program.py": "tests/functions_host/test_custom_handler and workers/test_handler_worker",
    "src/funcmcp_host/workers/handler_payload.py": "tests/functions_host/workers/test_handler_worker",
    "src/funcmcp_host/workers/rpc_stream.py": "tests/functions_host/workers/test_rpc",
    "src/funcmcp_host/workers/worker.py": "Types only; tests/functions_host/workers/test_process has uses.",
    "src/funcmcp/_page/app_frame.py": "tests/page/test_app_frame",
    "src/funcmcp/_page/page.py": "tests/page/test_page_response",
    "src/funcmcp/_client/transport.py": "It is a protocol; tests/client has tests of its implementations.",
    "src/funcmcp/_app/launch.py": "tests/app/test_mcp_server_run",
    "src/funcmcp/_text/other_frameworks.py": "tests/app/test_mcp_server, tests/authoring/calling/test_feature_context",
    "src/funcmcp/_objects/public_names.py": "tests/architecture/test_public_names",
    "src/funcmcp/_server/handlers/task_calls.py": "tests/server/handlers/test_tasks",
    "src/funcmcp/_server/connections/cancellation.py": "tests/server/connections/test_conversation",
    "src/funcmcp/_app/option_errors.py": "tests/app/test_mcp_server",
    "src/funcmcp/auth.py": "tests/architecture/test_public_names",
    "src/funcmcp/client.py": "tests/architecture/test_public_names",
    "src/funcmcp/middleware.py": "tests/architecture/test_public_names",
    "src/funcmcp/extensions.py": "tests/architecture/test_public_names",
    "src/funcmcp/providers.py": "tests/architecture/test_public_names",
    "src/funcmcp/_providers/provider.py": "tests/providers/test_provided",
    "src/funcmcp/_providers/schema_tools.py": "tests/providers/test_provided",
    "src/funcmcp/_app/providing.py": "tests/providers/test_provided",
    "src/funcmcp/_server/catalog/session_view.py": "tests/authoring/calling/test_session_rules",
    "src/funcmcp/transforms.py": "tests/architecture/test_public_names",
    "src/funcmcp/upstreams.py": "tests/architecture/test_public_names",
    "src/funcmcp/postgres.py": "tests/architecture/test_public_names",
    "src/funcmcp/redis.py": "tests/architecture/test_public_names",
    "src/funcmcp/_serving/composition.py": "tests/app/test_mcp_server and tests/app/test_mcp_server_run",
    "src/funcmcp/_serving/environment.py": "tests/app/test_mcp_server and tests/test_tasks",
    "src/funcmcp/_serving/health.py": "tests/cluster/test_readiness",
    "src/funcmcp/_serving/configuration_checks.py": "tests/app/test_mcp_server and tests/test_tasks",
    "src/funcmcp/_transports/batch.py": "tests/transports/test_connection and tests/wire/test_wire_jsonrpc",
    "src/funcmcp/_transports/http/admission/rate_limits.py": "tests/wire/test_wire_limits",
    "src/funcmcp/_transports/http/admission/cors.py": "tests/wire/test_wire_auth",
    "src/funcmcp/_page/mcp_clients.py": "tests/cli/install/test_entries and tests/page/test_page",
    "src/funcmcp/_transports/http/endpoints/resource_metadata.py": "tests/wire/test_wire_auth",
    "src/funcmcp/_transports/http/admission/caller.py": "tests/wire/test_wire_limits",
    "src/funcmcp/_transports/http/endpoints/streamable_headers.py": (
        "tests/transports/http/admission/test_admission_headers"
    ),
    "src/funcmcp/_transports/http/endpoints/handshake_client.py": "tests/transports/http/endpoints/test_handshake",
    "src/funcmcp/_transports/http/streams/disconnect.py": "tests/transports/http/endpoints/test_per_request",
}
"""Test files that belong to no single module, and modules whose tests are in another file, each with the reason."""

PARTS_WITHOUT_TESTS = {"__init__.py", "templates"}
"""Empty files, and the files that `funcmcp new` writes."""


@functools.cache
def modules() -> set[Path]:
    """Return the modules that need tests, as paths in the repository."""
    paths = {path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    untested = {path for path in paths if PARTS_WITHOUT_TESTS.intersection(path.parts)}
    return {path for path in paths - untested if not is_written_by_a_script(ROOT / path)}


@functools.cache
def mirrored_tests() -> set[Path]:
    """Return the test files outside the folders beside the mirror, as paths in the repository."""
    paths = {path.relative_to(ROOT) for path in (ROOT / TESTS).rglob("test_*.py")}
    return {path for path in paths if path.parts[1] not in {*BESIDE_THE_MIRROR, "node"}}


@functools.cache
def public_path(module: Path) -> str:
    """Return the path of a module's tests below their folder, without `test_` and the suffix."""
    package = next(package for package in PACKAGES if module.is_relative_to(package))
    path = PACKAGES[package] / module.relative_to(package).with_suffix("")
    return "/".join(part.removeprefix("_") for part in path.parts)


@functools.cache
def module_of(test: Path) -> Path | None:
    """Return the module that a test file belongs to by its path. Of several, the one with the longest name counts."""
    subject = test.with_name(test.stem.removeprefix("test_")).relative_to(TESTS).as_posix()
    candidates = [
        module
        for module in modules()
        if subject == public_path(module) or subject.startswith(f"{public_path(module)}_")
    ]
    return max(candidates, key=lambda module: len(module.name), default=None)


def misplaced_tests() -> set[str]:
    return {path.as_posix() for path in mirrored_tests() if module_of(path) is None}


def modules_without_tests() -> set[str]:
    return {path.as_posix() for path in modules() - {module_of(test) for test in mirrored_tests()}}


def test_a_test_file_has_the_path_of_its_module() -> None:
    misplaced = misplaced_tests() - EXCEPTIONS.keys()
    assert not misplaced, "\n".join(
        ["Move each file to its module's path, or name it in EXCEPTIONS:", *sorted(misplaced)]
    )


def test_a_module_has_a_test_file() -> None:
    untested = modules_without_tests() - EXCEPTIONS.keys()
    assert not untested, "\n".join(
        ["Add a test file, or name the one with the tests in EXCEPTIONS:", *sorted(untested)]
    )


def test_an_exception_is_an_exception() -> None:
    outdated = EXCEPTIONS.keys() - misplaced_tests() - modules_without_tests()
    assert not outdated, "\n".join(["Remove these from EXCEPTIONS: moved, or mirrored now.", *sorted(outdated)])


def test_an_exception_names_the_tests_of_its_module() -> None:
    named = {path: re.findall(r"tests/[\w/]+\w", EXCEPTIONS[path]) for path in EXCEPTIONS if path.startswith("src/")}
    assert not [path for path, names in named.items() if not names]
    tests = {name for names in named.values() for name in names}
    assert not {name for name in tests if not (ROOT / name).is_dir() and not (ROOT / f"{name}.py").is_file()}


def test_a_folder_beside_the_mirror_exists() -> None:
    assert all((ROOT / TESTS / name).is_dir() for name in BESIDE_THE_MIRROR)


@pytest.mark.parametrize(
    ("test", "module"),
    [
        ("tests/protocol/test_codec.py", "src/funcmcp/_protocol/codec.py"),
        ("tests/protocol/test_codec_numbers.py", "src/funcmcp/_protocol/codec.py"),
        ("tests/protocol/test_codecs.py", None),
        ("tests/server/test_codec.py", None),
    ],
)
def test_a_path_leads_to_its_module(test: str, module: str | None) -> None:
    assert module_of(Path(test)) == (Path(module) if module else None)
