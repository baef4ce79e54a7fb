"""A server with an OAuth proxy and tools with grants, a service that gives them, users, and their browsers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from funcmcp import Auth, Context, HTTPOptions, MCPServer
from funcmcp._grants import tool_grants
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import Grant, GrantProvider, User
from funcmcp.state import MemorySignIns
from tests.auth.making_tokens import Clock
from tests.instances import per_request
from tests.oauth_proxy.scripted import ScriptedHTTP
from tests.oauth_proxy.stage import ADA, ISSUER, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from funcmcp._grants.tool_grants import ToolGrants

SITE = "https://code.example.com"
EVE = User("eve", name="Eve")
USERS = {"ada": ADA, "eve": EVE}
URL_CAPABILITY: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}


class Service(ScriptedHTTP):
    """A service that gives grants: codes and refresh tokens that it accepts once.

    Attributes:
        scope: The ``scope`` of its answers; None for none.
        expires_in: The lifetime of tokens; None for none.
        refreshes: Whether it issues refresh tokens.
        answers: Its next answers, before the usual ones: a status and a value, or an exception.
        used: Codes and refresh tokens that were used.
        tokens: How many tokens it has issued.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scope: str | None = None
        self.expires_in: object = 3600
        self.refreshes = True
        self.answers: list[tuple[int, Any] | Exception] = []
        self.used: list[str] = []
        self.tokens = 0

    @property
    def forms(self) -> list[dict[str, str]]:
        """The forms of the requests for tokens."""
        return [form for _, url, _, form in self.requests if url == f"{SITE}/token"]

    @property
    def revoked(self) -> list[str]:
        """The tokens that were revoked."""
        return [form["token"] for _, url, _, form in self.requests if url == f"{SITE}/revoke"]

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        del headers
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if url == f"{SITE}/revoke":
            return 200, {}
        value = form.get("code") or form["refresh_token"]
        if value in self.used:
            return 400, {"error": "invalid_grant"}
        self.used.append(value)
        self.tokens += 1
        tokens: dict[str, Any] = {"access_token": f"token-{self.tokens}", "token_type": "bearer"}
        if self.expires_in is not None:
            tokens["expires_in"] = self.expires_in
        if self.refreshes:
            tokens["refresh_token"] = f"refresh-{self.tokens}"
        if self.scope is not None:
            tokens["scope"] = self.scope
        return 200, tokens


class Browser:
    """A browser of a person who is signed in at the identity provider.

    Attributes:
        http: Sends its requests, with its cookies.
        pages: The pages that it has shown.
    """

    def __init__(self, desk: Desk, user: User) -> None:
        self._desk = desk
        self.user = user
        self.http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=desk.mcp), base_url=ISSUER)
        self.pages: list[httpx2.Response] = []

    async def open(self, url: str) -> httpx2.Response:
        """Open a link."""
        return self._show(await self.http.get(url))

    async def press(self, url: str, origin: str | None = ISSUER) -> httpx2.Response:
        """Press the button of the page of a link."""
        return self._show(await self.http.post(url, headers={} if origin is None else {"origin": origin}))

    async def sign_in(self, redirect: httpx2.Response) -> httpx2.Response:
        """Return from the identity provider, to which a page has led."""
        query = self._desk.stage.upstream.sign_in(redirect.headers["location"], self.user)
        return self._show(await self.http.get("/oauth/callback", params=query))

    async def allow(self, redirect: httpx2.Response, **changes: str) -> httpx2.Response:
        """Return from the service, to which a page has led."""
        request = dict(parse_qsl(urlsplit(redirect.headers["location"]).query))
        self._desk.authorizations.append(request)
        query = {"code": self._desk.next_code(), "state": request["state"]} | changes
        return self._show(await self.http.get(request["redirect_uri"], params=query))

    async def connect(self, url: str) -> httpx2.Response:
        """Do all that is needed to connect an account."""
        assert (await self.open(url)).status_code == 200
        redirect = await self.press(url)
        if redirect.status_code == 303 and redirect.headers["location"].startswith("https://login."):
            redirect = await self.sign_in(redirect)
        if redirect.status_code != 303:
            return redirect
        return await self.allow(redirect)

    def _show(self, response: httpx2.Response) -> httpx2.Response:
        self.pages.append(response)
        return response


class Desk:
    """A server with tools that have grants.

    Attributes:
        stage: The proxy, and its identity provider.
        service: The service.
        mcp: The server.
        clock: The time at the service.
        authorizations: The parameters of the requests for authorization.
        received: The tokens that tools have got.
        questions: The keys of the questions that were asked.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.service: Service = options.pop("service", None) or Service()
        self.clock: Clock = options.pop("clock", None) or Clock()
        self.store: Any = options.pop("store") if "store" in options else MemorySignIns()
        self.stage = Stage(store=self.store)
        self.authorizations: list[dict[str, str]] = []
        self.received: list[str] = []
        self.questions: list[str] = []
        self.codes = 0
        self._tokens: dict[str, str] = {}
        monkeypatch.setattr(tool_grants, "UpstreamHTTP", lambda: self.service)
        grants = [provider("github", clock=self.clock, **options), provider("files", clock=self.clock)]
        self.mcp = MCPServer(
            "Orders",
            auth=Auth(self.stage.proxy, grants=grants),
            http=HTTPOptions(allowed_hosts=["orders.example.com"]),
        )
        self._add_tools()

    def _add_tools(self) -> None:
        @self.mcp.tool(grant=Grant("github", scopes=["repo"]))
        async def star(repository: str, context: Context) -> str:
            self.received.append(await context.grant_token("github"))
            return f"starred {repository}"

        @self.mcp.tool
        async def read(context: Context, scopes: list[str], refused: str | None = None) -> str:
            self.received.append(await context.grant_token("github", scopes, refused=refused))
            return "read"

        @self.mcp.tool(grant=[Grant("github"), Grant("files")])
        async def copy(context: Context) -> str:
            self.received += [await context.grant_token("github"), await context.grant_token("files")]
            return "copied"

        @self.mcp.tool
        async def disconnect(context: Context) -> bool:
            return await context.end_grant("github")

    @property
    def grants(self) -> ToolGrants:
        """The grants of the server."""
        grants = runtime_of(self.mcp).grants
        assert grants is not None
        return grants

    def next_code(self) -> str:
        """Return another code of the service."""
        self.codes += 1
        return f"code-{self.codes}"

    def browser(self, name: str = "ada") -> Browser:
        """Return another browser of a user."""
        return Browser(self, USERS[name])

    async def token(self, name: str = "ada") -> str:
        """Return an access token of a user."""
        if name not in self._tokens:
            if not self.stage.client_id:
                await self.stage.with_client()
            self.stage.upstream.user = USERS[name]
            self._tokens[name] = (await self.stage.tokens())["access_token"]
        return self._tokens[name]

    async def call(
        self,
        tool: str = "star",
        arguments: Mapping[str, Any] | None = None,
        *,
        name: str = "ada",
        browser: Browser | None = None,
        capabilities: Mapping[str, Any] = URL_CAPABILITY,
        action: str = "accept",
        content: Mapping[str, Any] | None = None,
    ) -> str:
        """Call a tool as a user who answers its questions; return the text of the result.

        Args:
            tool: The tool.
            arguments: Its arguments.
            name: The user.
            browser: Opens the pages of the questions; None for none.
            capabilities: Those of the client.
            action: The answer to the questions.
            content: The content of the answers to forms.
        """
        if arguments is None:
            arguments = {"repository": "mcp"} if tool == "star" else {}
        more: dict[str, Any] = {}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self.mcp), base_url=ISSUER) as http:
            for _ in range(6):
                result = await self._send(http, name, capabilities, {"name": tool, "arguments": arguments, **more})
                if result.get("resultType") != "input_required":
                    text: str = result["content"][0]["text"]
                    return text
                answers: dict[str, dict[str, Any]] = {}
                for key, request in result["inputRequests"].items():
                    self.questions.append(key)
                    answers[key] = {"action": action}
                    if "url" not in request["params"]:
                        answers[key]["content"] = dict(content or {})
                    elif browser is not None and action == "accept":
                        await browser.connect(request["params"]["url"])
                more = {"inputResponses": answers, "requestState": result["requestState"]}
        raise AssertionError("too many rounds")

    async def link(self, name: str = "ada", tool: str = "star", **options: Any) -> str:
        """Return the link that a client gets that can't open pages."""
        text = await self.call(tool, name=name, capabilities={}, **options)
        match = re.search(r"Open (\S+) in a browser", text)
        assert match, text
        return match[1]

    async def _send(
        self, http: httpx2.AsyncClient, name: str, capabilities: Mapping[str, Any], params: Mapping[str, Any]
    ) -> dict[str, Any]:
        message, fields = per_request("tools/call", **params)
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = dict(capabilities)
        headers = {field.replace("_", "-"): value for field, value in fields.items()}
        headers |= {
            "accept": "application/json, text/event-stream",
            "authorization": f"Bearer {await self.token(name)}",
        }
        answer = await http.post("/mcp", json={"jsonrpc": "2.0", **message}, headers=headers)
        result: dict[str, Any] = answer.json()["result"]
        return result


def provider(name: str, **options: Any) -> GrantProvider:
    """Return the service with a name."""
    defaults: dict[str, Any] = {
        "authorize": f"{SITE}/authorize",
        "token": f"{SITE}/token",
        "revoke": f"{SITE}/revoke",
        "title": name.title(),
    }
    return GrantProvider(name, "the-client", "the-secret", **defaults | options)
