"""Operations that no module of the package may use, checked in its source."""

from __future__ import annotations

import ast
import hmac
import importlib
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth import api_key
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.principal import Principal
from funcmcp._protocol.uri_template import _EXPRESSION
from funcmcp._state import seal
from funcmcp._state.seal import KeyRing
from tests.architecture.trees import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = sorted(SOURCE.rglob("*.py"))

REACHING_OUT = {"aiohttp", "ftplib", "grpc", "http.client", "httpx", "httpx2", "redis", "requests", "smtplib", "socket"}
REACHING_OUT |= {"azure.identity", "azure.storage", "ssl", "telnetlib", "urllib.request", "urllib3", "xmlrpc"}
REACHING_OUT.add("psycopg")
WHO_MAY = {
    "funcmcp/_compat/remote_auth.py": "the identity provider that the author names, for its metadata",
    "funcmcp/_compat/token_verifiers.py": "the issuer that the author names, about tokens",
    "funcmcp/_adapters/openapi/api_client.py": "the API whose document the author names",
    "funcmcp/_compat/served_in_tests.py": "the server of the test, on this machine",
    "funcmcp/_adapters/azure/storage.py": "the storage account that the operator names",
    "funcmcp/_adapters/postgres/link.py": "the PostgreSQL that the operator names",
    "funcmcp/_adapters/postgres/presence.py": "the same",
    "funcmcp/_adapters/redis/sessions.py": "the Redis that the operator names",
    "funcmcp/_adapters/redis/bus.py": "the same",
    "funcmcp/_adapters/redis/shared_pipeline.py": "the same",
    "funcmcp/_adapters/redis/task_records.py": "the same",
    "funcmcp/_adapters/redis/task_scripts.py": "the same",
    "funcmcp/_adapters/redis/tasks.py": "the same",
    "funcmcp/_adapters/redis/link.py": "the same",
    "funcmcp/_adapters/redis/masters.py": "the same, or the Sentinels and the nodes of a cluster",
    "funcmcp/_processes/listeners.py": "listens only",
    "funcmcp/_processes/supervisor.py": "passes the sockets on that listen",
    "funcmcp/_processes/systemd.py": "systemd, at the socket that it names",
    "funcmcp/_processes/uvicorn_server.py": "listens only, with the certificate that the operator names",
    "funcmcp/_auth/authorities.py": "nobody: it loads the certificate authorities for the others of sign-in",
    "funcmcp/_auth/connection_errors.py": "nobody: it reads the errors of ssl and socket",
    "funcmcp/_auth/tokens/introspection.py": "the issuer of opaque tokens, at the URL that the operator names",
    "funcmcp/_auth/tokens/jwks.py": "the issuer's keys, at the URL that the operator names",
    "funcmcp/_oauth_proxy/client_documents.py": "public hosts that clients name, at port 443; with an OAuthProxy only",
    "funcmcp/_oauth_proxy/upstream.py": "the identity provider that the operator names",
    "funcmcp/_adapters/http1/tls_handshake.py": "nobody: an argument has the type of ssl",
    "funcmcp/_client/http_exchange.py": "the server that the caller of the client names",
    "funcmcp/_client/headless_browser.py": "servers on this machine, for tests",
    "funcmcp/_client/public_addresses.py": "the resolver of the machine, for the host of an endpoint with public_only",
    "funcmcp/_client/session_cookies.py": "nobody: http.cookiejar reads requests of urllib, which are not sent",
    "funcmcp/_client/targets.py": "nobody: an option has the type of ssl",
    "funcmcp/_client/http_connections.py": "the same: it reads which proxy the environment names for the server",
    "funcmcp/_client/token_requests.py": "the authorization server of the endpoint that the user of the client names",
    "funcmcp_host/blob_service.py": "the storage account of the function app's settings, with --storage azure",
    "funcmcp_host/custom_handler.py": "the program that it has started, at its port on loopback",
    "funcmcp_host/durable/listener.py": "listens only, on loopback",
    "funcmcp_host/handler_program.py": "a port of loopback, to find out whether the program listens",
    "funcmcp_host/workers/handler_worker.py": "the program that it has started, at its port on loopback",
    "funcmcp_host/http_proxy.py": "the port on loopback that the worker names, for requests of HTTP triggers",
    "funcmcp_host/workers/process.py": "the worker that it has started, over a socket pair",
    "funcmcp_cli/host.py": "nobody: a socket that sends nothing has the address of this machine in its network",
    "funcmcp_host/workers/python_main.py": "the host that has started it, over the same",
    "funcmcp_host/workers/rpc_stream.py": "listens only",
}

RUNNING_CODE = {"eval", "exec", "compile", "__import__"}
FROM_DATA = {"code", "dill", "jsonpickle", "marshal", "pickle", "shelve", "subprocess", "yaml", "xml", "pty", "ctypes"}
READS_EVENTS = {"funcmcp/_adapters/strict_yaml.py": "it makes values of JSON from the events of PyYAML's parser"}
STARTS_A_PROCESS = {
    "funcmcp_cli/doctor/project.py": "Python itself, to import the code that the person at the command names",
    "funcmcp_cli/migrate/verify.py": "the Python of a function app, to ask for its version",
    "funcmcp/_client/orphans.py": "Python itself, to end the commands of the client when this process has ended",
}
STARTS_A_SERVER = {
    "funcmcp/_client/process_group.py": "the command of the client, or the worker of a function app",
}
CALLS_THE_KERNEL = {"funcmcp_host/workers/python_main.py": "prctl, so that a worker ends with its host"}
CALLS_OF_THE_SYSTEM = re.compile(r"os\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*)")


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def uses(tree: ast.Module, modules: set[str]) -> bool:
    return any(name == module or name.startswith(module + ".") for name in imported(tree) for module in modules)


def test_nothing_reaches_out_but_for_keys_to_redis_and_from_the_command_line() -> None:
    """So tokens of callers are never forwarded, and no URL of a caller is requested but that of a client's document."""
    assert {name_of(path) for path in MODULES if uses(tree_of(path), REACHING_OUT)} == set(WHO_MAY)


def test_no_data_is_ever_code() -> None:
    for path in MODULES:
        tree = tree_of(path)
        allowed = {"subprocess"} if name_of(path) in STARTS_A_PROCESS else set()
        allowed |= {"ctypes"} if name_of(path) in CALLS_THE_KERNEL else set()
        allowed |= {"yaml"} if name_of(path) in READS_EVENTS else set()
        assert not uses(tree, FROM_DATA - allowed), path
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in RUNNING_CODE, f"{path}:{node.lineno}"
                assert not CALLS_OF_THE_SYSTEM.fullmatch(called), f"{path}:{node.lineno}"
                starts = "create_subprocess" in called or "subprocess_exec" in called or "subprocess_shell" in called
                assert not starts or name_of(path) in STARTS_A_SERVER, f"{path}:{node.lineno}"


CLIENTS_OF_SERVICES = {f"funcmcp/_grants/{name}.py" for name in ("accounts", "connecting", "tool_grants")}


def test_the_authorization_server_is_in_the_package_of_the_proxy_only() -> None:
    """Elsewhere there is no confused deputy. tests/sign_in/test_attacks.py has the attacks on the proxy.

    The client signs its own user in. A server is a client of the authorization server of an upstream, for itself or for
    its user: tests/upstreams/test_auth.py and test_user_grants.py have the attacks on that. It also is a client of the
    services of grants: tests/grants has the attacks on that.
    """
    clients_of_upstreams = {"funcmcp/_upstreams/auth.py", "funcmcp/_upstreams/user_grants.py"}
    clients_of_upstreams |= {"funcmcp/_compat/oauth_providers.py", "funcmcp/_compat/remote_auth.py"}  # names only
    clients_of_upstreams |= {"funcmcp/_compat/token_verifiers.py"}  # a client of an introspection endpoint
    clients_of_upstreams |= {"funcmcp/_auth/grants.py", "funcmcp/_auth/client_options.py", *CLIENTS_OF_SERVICES}
    client_names = {"authorize_url", "redirect_uri", "code_verifier", "client_secret", "refresh_token"}
    for path in MODULES:
        is_client = name_of(path).startswith("funcmcp/_client/") or name_of(path) in clients_of_upstreams
        is_client |= name_of(path) == "funcmcp/_auth/tokens/introspection.py"
        if is_client or name_of(path).startswith("funcmcp/_oauth_proxy/"):
            continue
        names = {node.id for node in ast.walk(tree_of(path)) if isinstance(node, ast.Name)}
        texts = {node.value for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant)}
        assert not client_names & {*names, *texts}, path


EXPRESSIONS = {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub"}
APART = {_EXPRESSION.pattern}
"""It parses the templates of authors only, and the comma separates its repeats."""
OF_AUTHORS = {"funcmcp/_authoring/schemas/ecma_patterns.py", "funcmcp/_compat/openapi.py"}
"""Modules that compile the patterns of authors, and match no text of a client with them."""


def makes_an_expression(called: ast.expr) -> bool:
    return (
        isinstance(called, ast.Attribute)
        and called.attr in EXPRESSIONS
        and isinstance(called.value, ast.Name)
        and called.value.id == "re"
    )


def patterns() -> dict[str, str]:
    """Return the texts of all regular expressions in the package, by module and line."""
    texts = {}
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and makes_an_expression(node.func):
                if name_of(path) in OF_AUTHORS and isinstance(node.args[0], ast.Name | ast.Attribute):
                    continue
                text = ast.literal_eval(node.args[0])
                if text not in APART:
                    texts[f"{name_of(path)}:{node.lineno}"] = text
    return texts


_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_MANY = 64


def endless_repeats(parsed: Any, inside: bool = False) -> Iterator[str]:
    """Yield repeats without a small limit inside other repeats, which can take exponential time."""
    for kind, value in parsed:
        endless = str(kind) in _REPEATS and value[1] > _MANY
        if endless and inside:
            yield str(value)
        for part in value if isinstance(value, tuple | list) else (value,):
            for sub in part if isinstance(part, list) else (part,):
                if type(sub).__name__ == "SubPattern":
                    yield from endless_repeats(sub, inside or endless)


def nested(pattern: str) -> list[str]:
    return list(endless_repeats(importlib.import_module("re._parser").parse(pattern)))


@pytest.mark.parametrize("pattern", ["(a+)+", "(?:a*b?)*c", "((x|y+))*", "(a{2,}b|c)+", "(?>(a+)+)"])
def test_a_repeat_inside_a_repeat_is_found(pattern: str) -> None:
    assert nested(pattern)


def test_no_expression_of_ours_has_a_repeat_inside_a_repeat() -> None:
    texts = patterns()
    assert texts
    assert not [place for place, pattern in texts.items() if nested(pattern)]


class FakeHMAC:
    """Replaces `hmac`: counts comparisons, and returns a fixed result for each of them."""

    def __init__(self, module: Any, answer: bool) -> None:
        self._module = module
        self._answer = answer
        self.comparisons = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def compare_digest(self, first: bytes, second: bytes) -> bool:
        assert len(first) == len(second)
        self.comparisons += 1
        return self._answer


@pytest.mark.parametrize("answer", [True, False])
async def test_secrets_are_compared_by_compare_digest_and_by_nothing_else(
    monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    """The comparison in constant time decides about a key and a sealed text, with every configured key."""
    keys = APIKeys({"alice": "key-of-alice-1234", "bob": ["key-of-bob-12345", "next-of-bob-1234"]})
    ring = KeyRing([b"current" * 5, b"earlier" * 5])
    token, forged = ring.seal("state", b"{}"), KeyRing([b"another" * 5]).seal("state", b"{}")
    fake = FakeHMAC(hmac, answer)
    monkeypatch.setattr(api_key, "hmac", fake)
    monkeypatch.setattr(seal, "hmac", fake)
    for key in ("key-of-alice-1234", "a-key-of-nobody-1"):
        fake.comparisons = 0
        assert isinstance(await keys({"x-api-key": key}), Principal) is answer
        assert fake.comparisons == 3
    for text in (token, forged):
        fake.comparisons = 0
        assert (ring.open("state", text) == b"{}") is answer
        assert fake.comparisons == 2


FLOORS = {"h11": (0, 16), "joserfc": (1, 8)}
"""Earlier versions permit request smuggling (CVE-2025-43859), or show the payloads of tokens in errors."""


def test_what_is_installed_has_none_of_the_faults_that_were_mended_elsewhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [
        *project["dependencies"],
        *(requirement for extra in project["optional-dependencies"].values() for requirement in extra),
    ]
    lowest: dict[str, list[tuple[int, ...]]] = {}
    for requirement in requirements:
        if match := re.match(r"([\w-]+)>=([\d.]+)", requirement):
            lowest.setdefault(match[1], []).append(tuple(map(int, match[2].split("."))))
    for name, floor in FLOORS.items():
        assert all(version >= floor for version in lowest[name]), name
