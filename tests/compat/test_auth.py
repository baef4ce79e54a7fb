"""Token verifiers of FastMCP and the official SDK: who is let in there, and here."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from pydantic import AnyHttpUrl

from funcmcp import compat
from funcmcp._compat.auth import native_auth
from funcmcp.auth import APIKeys, Auth, Challenge, Principal, UnavailableError
from funcmcp.compat import (
    AccessToken,
    FastMCP,
    MCPServer,
    StaticTokenVerifier,
    TokenVerificationError,
    TokenVerifier,
    get_access_token,
)
from funcmcp.tasks import SQLiteTasks
from tests.compat.token_cases import CASES
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

REPOSITORY = Path(__file__).parents[2]
FASTMCP = REPOSITORY / ".servers/fastmcp/bin/python"
SERVERS = ("sdk-resource", "sdk", "fastmcp", "static")
HEADERS = {
    "none": None,
    "scheme-only": "Bearer",
    "two-spaces": "Bearer  valid",
    "tab": "Bearer\tvalid",
    "lower-case-scheme": "bearer valid",
    "upper-case-scheme": "BEARER valid",
    "unknown-token": "Bearer unknown",
    "two-tokens": "Bearer valid valid",
    "other-scheme": "Basic valid",
    "no-scheme": "valid",
}
ISSUER = AnyHttpUrl("https://login.example.com")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}

STRICTER = {
    "expiry-this-second": "A token has expired in the second of its expiry, not after it (RFC 7519 section 4.1.4).",
    "expiry-zero": "Zero is a time of 1970, not a missing expiry.",
    "expiry-false": "The same: False is zero.",
}
"""Cases that are refused here and accepted by an original, with the reason."""

LOOSER = {"claims-none": "In the SDK, None means that there are no claims. FastMCP's AccessToken can't be made so."}
"""Cases in which an original fails with 500, and which are accepted here, with the reason."""


class Answer:
    """The answer of a server to a request."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.text = response.text
        self.challenge = dict(re.findall(r'(\w+)="([^"]*)"', response.headers.get("www-authenticate", "")))

    @property
    def accepted(self) -> bool:
        return self.status == 200


Answers = dict[tuple[str, str], Answer]


@contextmanager
def serving(python: str, frameworks: str) -> Iterator[str]:
    """Yield the address of the servers of `tests.compat.token_servers`."""
    command = [python, "-m", "tests.compat.token_servers", frameworks]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, cwd=REPOSITORY
    ) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def answers_of(python: str, frameworks: str) -> Answers:
    """Return the answers of all servers to all cases and headers."""
    credentials = {**{name: f"Bearer {name}" for name in CASES}, **HEADERS}
    answers: Answers = {}
    with serving(python, frameworks) as url, httpx2.Client(timeout=PATIENCE) as client:
        for server in SERVERS:
            for name, header in credentials.items():
                headers = {"accept": "application/json, text/event-stream", "connection": "close"}
                if header is not None:
                    headers["authorization"] = header
                answers[server, name] = Answer(client.post(f"{url}/{server}/mcp", json=INITIALIZE, headers=headers))
        answers["sdk", "metadata"] = Answer(client.get(f"{url}/sdk/.well-known/oauth-protected-resource/mcp"))
    return answers


@pytest.fixture(scope="module")
def originals() -> Answers:
    python = require("FastMCP (scripts/setup-fastmcp.sh)", str(FASTMCP) if FASTMCP.exists() else None)
    return answers_of(python, "originals")


@pytest.fixture(scope="module")
def ours() -> Answers:
    return answers_of(sys.executable, "compat")


@pytest.mark.parametrize("case", [*CASES, *HEADERS])
@pytest.mark.parametrize("server", SERVERS)
def test_a_token_that_an_original_refuses_is_refused_likewise(
    server: str, case: str, originals: Answers, ours: Answers
) -> None:
    original, answer = originals[server, case], ours[server, case]
    if original.accepted and case in STRICTER:
        assert answer.status in {200, 401}
    elif original.status == 500 and case in LOOSER:
        assert answer.accepted
    else:
        assert answer.status == original.status
        if case in CASES:
            assert answer.challenge.get("error") == original.challenge.get("error")
        assert answer.challenge.get("resource_metadata") == original.challenge.get("resource_metadata")


@pytest.mark.parametrize("case", [*STRICTER, *LOOSER])
def test_a_difference_is_a_difference(case: str, originals: Answers, ours: Answers) -> None:
    pairs = [(originals[server, case].accepted, ours[server, case].accepted) for server in SERVERS]
    assert (case in STRICTER, case in LOOSER) == ((True, False) in pairs, (False, True) in pairs)


def test_the_metadata_of_the_settings_are_those_of_the_sdk(originals: Answers, ours: Answers) -> None:
    assert json.loads(ours["sdk", "metadata"].text) == json.loads(originals["sdk", "metadata"].text)


def test_every_outcome_is_among_the_cases(ours: Answers) -> None:
    assert {answer.status for answer in ours.values()} == {200, 401, 403, 500}


# Tokens without a subject

NEWEST = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


class Caller:
    """A client with a token, in a session of its own."""

    def __init__(self, http: httpx2.AsyncClient, token: str) -> None:
        self._http = http
        self.headers = {**NEWEST, "authorization": f"Bearer {token}"}

    async def send(self, method: str, **params: Any) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self._http.post("/mcp", json=message, headers=self.headers)

    async def begin(self) -> dict[str, Any]:
        """Begin the session, and return the capabilities of the server."""
        response = await self.send("initialize", **INITIALIZE["params"])  # type: ignore[arg-type]
        self.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        capabilities: dict[str, Any] = response.json()["result"]["capabilities"]
        return capabilities

    async def error(self, method: str, **params: Any) -> int:
        """Return the code of the error that answers a request."""
        code: int = (await self.send(method, **params)).json()["error"]["code"]
        return code


@asynccontextmanager
async def callers(tokens: dict[str, dict[str, Any]], **options: Any) -> AsyncIterator[list[Caller]]:
    """Yield the callers of a server with a tool that may be a task."""
    mcp = FastMCP("tasks", auth=StaticTokenVerifier(tokens), **options)

    @mcp.tool(task=True)
    async def work() -> str:
        return "done"

    @mcp.tool
    def who() -> dict[str, Any]:
        token = get_access_token()
        assert token is not None
        return {"client": token.client_id, "subject": token.subject}

    transport = httpx2.ASGITransport(app=mcp)
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        made = [Caller(http, token) for token in tokens]
        yield made


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return "memory" if request.param == "memory" else SQLiteTasks(tmp_path / "tasks.db")


async def test_users_of_one_application_without_subjects_have_sessions_and_tasks_of_their_own(store: Any) -> None:
    tokens = {name: {"client_id": "app", "claims": {"oid": "shared"}} for name in ("ann", "ann-renewed", "bob")}
    async with callers(tokens, tasks=store) as (ann, *others):
        assert "list" not in (await ann.begin())["tasks"]
        created = (await ann.send("tools/call", name="work", arguments={}, task={})).json()["result"]["task"]
        task_id = created["taskId"]
        assert "done" in (await ann.send("tasks/result", taskId=task_id)).text
        assert '"client":"app","subject":null' in (await ann.send("tools/call", name="who", arguments={})).text
        assert await ann.error("tasks/list") == -32601
        for other in others:
            other.headers["mcp-session-id"] = ann.headers["mcp-session-id"]
            assert (await other.send("tasks/list")).status_code == 404
            del other.headers["mcp-session-id"]
            await other.begin()
            assert await other.error("tasks/list") == -32601
            assert [await other.error(f"tasks/{name}", taskId=task_id) for name in ("get", "result", "cancel")] == (
                [-32602] * 3
            )
        assert (await ann.send("tasks/get", taskId=task_id)).json()["result"]["status"] == "completed"


async def test_a_subject_keeps_its_tasks_when_its_token_is_renewed() -> None:
    tokens = {name: {"client_id": "app", "sub": "ann"} for name in ("ann", "ann-renewed")}
    tokens["bob"] = {"client_id": "app", "sub": "bob"}
    async with callers(tokens) as (ann, renewed, bob):
        assert "list" in (await ann.begin())["tasks"]
        await ann.send("tools/call", name="work", arguments={}, task={})
        renewed.headers["mcp-session-id"] = ann.headers["mcp-session-id"]
        (task,) = (await renewed.send("tasks/list")).json()["result"]["tasks"]
        assert "done" in (await renewed.send("tasks/result", taskId=task["taskId"])).text
        assert '"client":"app","subject":"ann"' in (await renewed.send("tools/call", name="who", arguments={})).text
        await bob.begin()
        assert (await bob.send("tasks/list")).json()["result"]["tasks"] == []


class Named:
    """A token with members that a test chooses."""

    def __init__(self, token: str, **members: Any) -> None:
        self.token, self.client_id, self.expires_at = token, "app", None
        self.scopes: list[str] = []
        self.__dict__.update(members)


class Everyone:
    def __init__(self, **members: Any) -> None:
        self.members = members

    async def verify_token(self, token: str) -> Named:
        return Named(token, **self.members)


async def principals(**members: Any) -> list[Principal]:
    """Return the principals of two tokens that have the same members."""
    auth = native_auth(None, Everyone(**members))
    assert isinstance(auth, Auth)
    made = [await auth.authenticator({"authorization": f"Bearer {token}"}) for token in ("a", "b")]
    assert all(isinstance(principal, Principal) for principal in made)
    return made  # type: ignore[return-value]


@pytest.mark.parametrize("subject", [None, "", 5, True, 0, ["ann"], {"id": "ann"}])
async def test_a_subject_in_the_claims_that_is_no_text_is_no_subject(subject: Any) -> None:
    first, second = await principals(claims={"sub": subject, "oid": "x", "azp": "x", "appid": "x", "email": "x"})
    assert first.per_token
    assert first.key != second.key


async def test_the_subject_of_the_token_goes_before_that_of_the_claims() -> None:
    first, second = await principals(subject="ann", claims={"sub": "bob", "iss": "https://login.example.com"})
    assert first.key == second.key == ("https://login.example.com", "app", "ann")
    (first, second) = await principals(claims={"sub": "bob"})
    assert first.key == second.key == ("Everyone", "app", "bob")


async def test_a_token_that_is_bound_to_a_key_is_no_bearer_token() -> None:
    auth = native_auth(None, StaticTokenVerifier({"t": {"client_id": "app", "scopes": [], "cnf": {"jkt": "x"}}}))
    assert isinstance(auth, Auth)
    identity = await auth.authenticator({"authorization": "Bearer t"})
    assert isinstance(identity, Challenge)
    assert "bound to a key" in identity.description


# What stops the start


class Verifier(TokenVerifier):
    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="app", scopes=[])


def settings(**members: Any) -> AuthSettings:
    return AuthSettings(issuer_url=ISSUER, resource_server_url=None, **members)


@pytest.mark.parametrize(
    ("members", "name"),
    [
        ({"client_registration_options": ClientRegistrationOptions(enabled=True)}, "client_registration_options"),
        ({"revocation_options": RevocationOptions(enabled=True)}, "revocation_options"),
        ({"identity_assertion_enabled": True}, "identity_assertion_enabled"),
        ({"service_documentation_url": "https://docs.example.com"}, "service_documentation_url"),
    ],
)
def test_a_member_of_the_settings_that_is_not_handled_stops_the_start(members: dict[str, Any], name: str) -> None:
    with pytest.raises(TypeError, match=f"does not support {name} of AuthSettings"):
        MCPServer("a", auth=settings(**members), token_verifier=Verifier())


def test_every_member_of_the_settings_that_is_not_handled_is_named() -> None:
    class Newer(AuthSettings):
        dpop_required: bool = True

    newer = Newer(issuer_url=ISSUER, resource_server_url=None, identity_assertion_enabled=True)
    with pytest.raises(TypeError, match="identity_assertion_enabled, dpop_required of Newer"):
        MCPServer("a", auth=newer, token_verifier=Verifier())


def test_members_that_are_switched_off_change_nothing() -> None:
    switched_off = settings(
        client_registration_options=ClientRegistrationOptions(), revocation_options=RevocationOptions()
    )
    MCPServer("a", auth=switched_off, token_verifier=Verifier())


def test_a_server_url_that_is_not_secure_stops_the_start() -> None:
    insecure = AuthSettings(
        issuer_url=ISSUER,
        resource_server_url=AnyHttpUrl("http://api.example.com/mcp"),
        validate_token_resource=False,
    )
    with pytest.raises(ValueError, match="The resource must begin with https://"):
        MCPServer("a", auth=insecure, token_verifier=Verifier())


@pytest.mark.parametrize(
    "auth",
    [
        Auth(APIKeys({"ann": "0123456789abcdef"})),
        APIKeys({"ann": "0123456789abcdef"}),
        Verifier(),
        {"issuer_url": "https://login.example.com", "required_scopes": ["read"]},
        SimpleNamespace(issuer_url=ISSUER, required_scopes=["read"]),
    ],
)
def test_a_verifier_beside_anything_but_the_settings_stops_the_start(auth: Any) -> None:
    with pytest.raises(TypeError, match=r"can't be combined with token_verifier="):
        MCPServer("a", auth=auth, token_verifier=Verifier())


def _server_with(option: str) -> MCPServer:
    options: dict[str, Any] = {option: SimpleNamespace()}
    return MCPServer("a", None, None, None, **options)


@pytest.mark.parametrize("option", ["auth", "token_verifier"])
def test_an_object_that_verifies_no_tokens_stops_the_start(option: str) -> None:
    with pytest.raises(TypeError, match="has no method verify_token"):
        _server_with(option)
    with pytest.raises(TypeError, match="has no method verify_token"):
        MCPServer("a", auth=settings())


def test_a_class_of_verifiers_stops_the_start() -> None:
    with pytest.raises(TypeError, match=r"not a class\. Write Verifier\(\.\.\.\)"):
        FastMCP("a", auth=Verifier)


def test_a_rule_of_a_component_can_not_be_set_later() -> None:
    mcp = FastMCP("a")
    component = mcp.add_tool(lambda: "x", name="t")
    with pytest.raises(AttributeError, match="auth of the tool t can't be set"):
        component.auth = [lambda _context: False]
    assert component.auth is None


class WithRoutes(Verifier):
    def get_routes(self, mcp_path: str | None = None) -> list[str]:
        return [f"/authorize{mcp_path}"]


class WithoutRoutes(Verifier):
    def get_routes(self, mcp_path: str | None = None) -> list[str]:
        return [] if mcp_path == "/mcp" else ["/x"]


class WithMiddleware(Verifier):
    def get_middleware(self) -> list[str]:
        return []


def test_a_provider_whose_routes_and_checks_would_be_lost_stops_the_start() -> None:
    with pytest.raises(TypeError, match="get_routes returned str"):
        FastMCP("a", auth=WithRoutes())
    with pytest.raises(TypeError, match="WithMiddleware has a method get_middleware"):
        FastMCP("a", auth=WithMiddleware())
    FastMCP("a", auth=WithoutRoutes())


def test_authentication_can_not_be_changed_after_the_construction() -> None:
    mcp = MCPServer("a")
    with pytest.raises(AttributeError, match=r"Write MCPServer\(\.\.\., auth=\.\.\.\)"):
        mcp.auth = Verifier()  # type: ignore[misc] # what authors of FastMCP write
    with pytest.raises(AttributeError, match=r"settings\.auth can't be changed"):
        mcp.settings.auth = settings()
    verifier = Verifier()
    assert FastMCP("b", auth=verifier).auth is verifier


class UnavailableVerifier(TokenVerifier):
    async def verify_token(self, token: str) -> Any:
        raise {"ours": TokenVerificationError, "theirs": type("TokenVerificationError", (RuntimeError,), {})}.get(
            token, ValueError
        )("no route\nto host")


@pytest.mark.parametrize(
    ("token", "error"), [("ours", UnavailableError), ("theirs", UnavailableError), ("x", ValueError)]
)
async def test_a_token_that_can_not_be_verified_now_is_not_refused(
    token: str, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    auth = native_auth(UnavailableVerifier(), None)
    assert isinstance(auth, Auth)
    with pytest.raises(error):
        await auth.authenticator({"authorization": f"Bearer {token}"})
    lines = [record.getMessage() for record in caplog.records]
    expected = ["event=token_not_verified verifier=UnavailableVerifier reason=no route\\nto host"]
    assert lines == (expected if error is UnavailableError else [])


NAMES = """
ClerkTokenVerifier DiscordTokenVerifier EntraOBOToken GitHubTokenVerifier GoogleTokenVerifier HuggingFaceTokenVerifier
IdentityAssertion InMemoryOAuthProvider OAuthProvider WorkOSTokenVerifier
"""
"""Public names of `fastmcp.server.auth` and its providers in FastMCP 4.2.3 that funcmcp.compat does not have."""


@pytest.mark.parametrize("name", NAMES.split())
def test_a_name_of_authentication_in_fastmcp_leads_to_names_that_exist(name: str) -> None:
    with pytest.raises(ImportError, match=f"funcmcp.compat has no {name}. ") as error:
        getattr(compat, name)
    for module, attribute in re.findall(r"(funcmcp\.[a-z]+)\.([A-Za-z_]+)", str(error.value)):
        assert hasattr(importlib.import_module(module), attribute)


def test_a_verifier_takes_the_arguments_of_fastmcp() -> None:
    verifier = TokenVerifier("https://api.example.com", ["read"])
    assert (str(verifier.base_url), verifier.required_scopes) == ("https://api.example.com/", ["read"])
    assert StaticTokenVerifier({}).required_scopes == []
    with pytest.raises(TypeError, match="resource_server_url"):
        TokenVerifier(resource_server_url="https://api.example.com")  # type: ignore[call-arg]


def test_errors_of_tokens_do_not_show_them() -> None:
    with pytest.raises(ValueError, match="expires_at") as error:
        AccessToken(token="t", client_id="app", scopes=[], expires_at="s3cret")  # type: ignore[arg-type]
    assert "s3cret" not in str(error.value)
