"""What clients keep between requests, in two halves: they get it from one version, and use it at another one.

Each function is an asynchronous generator with one ``yield`` between its halves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import httpx2

from funcmcp._oauth_proxy.flows import challenge_of
from tests.instances import Caller, per_request, text_of
from tests.patience import PATIENCE
from tests.sign_in.browsing import BACK, browse, filled_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ANSWER = {"action": "accept", "content": {"size": 3}}
_VERIFIER = "a-verifier-of-the-client-with-more-than-43-characters"
_MENU = "menu://today"
_PAUSE = 0.05


class RefusedError(Exception):
    """A version can't read what another one has written.

    Args:
        status: Of the response.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")


async def per_request_result(caller: Caller, url: str, method: str, **params: Any) -> dict[str, Any]:
    """Send a request of 2026-07-28 with tasks, and return its result."""
    message, headers = per_request(method, **params)
    capabilities = message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    capabilities["extensions"] = {"io.modelcontextprotocol/tasks": {}}
    response = await caller.post(url, message, **headers)
    assert response.status_code == 200, response.text
    result: dict[str, Any] = response.json()["result"]
    return result


async def session(url: str, http: httpx2.AsyncClient, _folder: Path) -> AsyncIterator[None]:
    """A session with a subscription and a log level."""
    caller = Caller(http)
    await caller.begin(url)
    assert "result" in await caller.ask(url, "resources/subscribe", uri=_MENU)
    assert "result" in await caller.ask(url, "logging/setLevel", level="error")
    yield
    assert await caller.call(url, "who") == "nobody client"
    async with caller.stream(url, caller.request("tools/call", name="log", arguments={})) as events:
        first = await events.message()
        assert first is not None
        assert first["params"]["level"] == "error"
    async with caller.stream(url) as changes:
        await caller.call(url, "touch", uri="menu://other")
        await caller.call(url, "touch", uri=_MENU)
        change = await changes.message()
    assert change is not None
    assert change["params"] == {"uri": _MENU}


async def signed_session(url: str, http: httpx2.AsyncClient, _folder: Path) -> AsyncIterator[None]:
    """A session whose id has what is known of the client, and one that the client has ended."""
    caller, ended = Caller(http), Caller(http)
    await caller.begin(url)
    await ended.begin(url)
    assert (await http.delete(url, headers=ended.headers)).status_code == 204
    yield
    assert await caller.call(url, "who") == "nobody client"
    assert (await ended.post(url, ended.request("ping"))).status_code == 404


async def cursor(url: str, http: httpx2.AsyncClient, _folder: Path) -> AsyncIterator[None]:
    """The place in a list from which the client asks for the next page."""
    caller = Caller(http)
    await caller.begin(url)
    page = (await caller.ask(url, "tools/list"))["result"]
    names = [tool["name"] for tool in page["tools"]]
    yield
    while "nextCursor" in page:
        page = (await caller.ask(url, "tools/list", cursor=page["nextCursor"]))["result"]
        names += [tool["name"] for tool in page["tools"]]
    assert names == sorted({*names}, key=names.index)
    assert {"add", "order", "touch"} <= {*names}


async def state(url: str, http: httpx2.AsyncClient, _folder: Path) -> AsyncIterator[None]:
    """The state of a call that has asked something."""
    caller = Caller(http)
    call = {"name": "order", "arguments": {"what": "Tea"}}
    question = await per_request_result(caller, url, "tools/call", **call)
    yield
    answers = dict.fromkeys(question["inputRequests"], ANSWER)
    more = {"inputResponses": answers, "requestState": question["requestState"]}
    result = await per_request_result(caller, url, "tools/call", **call, **more)
    assert text_of({"result": result}) == "Tea in 3"


async def tasks(url: str, http: httpx2.AsyncClient, folder: Path) -> AsyncIterator[None]:
    """A task that has ended, one that has asked something, and one that runs when its process ends."""
    caller = Caller(http)
    ended, asking, running = [
        await created(caller, url, tool, dish)
        for tool, dish in (("cook", "soup"), ("prepare", "pie"), ("bake", "bread"))
    ]
    assert (await until(caller, url, ended, "completed"))["status"] == "completed"
    question = await until(caller, url, asking, "input_required")
    await until_noted(folder / "begun", "bread")
    yield
    assert text_of(await until(caller, url, ended, "completed")) == "soup is ready"
    answers = dict.fromkeys(question["inputRequests"], ANSWER)
    await per_request_result(caller, url, "tasks/update", taskId=asking, inputResponses=answers)
    assert text_of(await until(caller, url, asking, "completed")) == "pie in 3"
    (folder / "bread").touch()
    assert text_of(await until(caller, url, running, "completed")).startswith("bread by ")
    assert (folder / "calls").read_text(encoding="utf-8").split() == ["soup"]


async def created(caller: Caller, url: str, tool: str, dish: str) -> str:
    """Call a tool as a task, and return the id of the task."""
    result = await per_request_result(caller, url, "tools/call", name=tool, arguments={"dish": dish})
    assert result["resultType"] == "task", result
    task_id: str = result["taskId"]
    return task_id


async def until(caller: Caller, url: str, task_id: str, status: str) -> dict[str, Any]:
    """Return a task when it has a status; it is an error if it ends with another one."""
    async with asyncio.timeout(PATIENCE):
        while (task := await per_request_result(caller, url, "tasks/get", taskId=task_id))["status"] != status:
            assert task["status"] not in {"completed", "failed", "cancelled"}, task
            await asyncio.sleep(_PAUSE)
    return task


async def until_noted(file: Path, line: str) -> None:
    """Wait until a file has a line."""
    async with asyncio.timeout(PATIENCE):
        while not _has_line(file, line):  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(_PAUSE)


def _has_line(file: Path, line: str) -> bool:
    return file.exists() and line in file.read_text(encoding="utf-8").split()


class SigningIn:
    """A client with a user who signs in, one request after the other.

    Args:
        url: The endpoint.
        user: The name of the user.

    Attributes:
        steps: The names of the requests to the server, in their order.
        tokens: The last answer with tokens.
    """

    steps = ("register", "authorize", "consent", "callback", "exchange", "refresh")

    def __init__(self, url: str, user: str) -> None:
        self.tokens: dict[str, Any] = {}
        self._url = url
        self._origin = url.removesuffix("/mcp")
        self._user = user
        self._http = httpx2.AsyncClient(base_url=self._origin, timeout=PATIENCE, trust_env=False)
        self._client = {"redirect_uri": BACK, "resource": url}
        self._form: dict[str, str] = {}
        self._provider = self._code = ""

    async def run(self, *steps: str) -> None:
        """Send these requests; raise RefusedError if one of them is refused."""
        for step in steps:
            await getattr(self, f"_{step}")()

    async def call(self) -> str:
        """Call a tool with the access token, and return its text."""
        caller = Caller(self._http, {"authorization": f"Bearer {self.tokens['access_token']}"})
        message, headers = per_request("tools/call", name="who", arguments={})
        response = await caller.post(self._url, message, **headers)
        if response.status_code != 200:
            raise RefusedError(response.status_code)
        return text_of(response.json())

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _register(self) -> None:
        client = {"client_name": "client", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
        grants = ["authorization_code", "refresh_token"]
        answer = _checked(await self._http.post("/oauth/register", json={**client, "grant_types": grants}), 201)
        self._client["client_id"] = answer.json()["client_id"]

    async def _authorize(self) -> None:
        challenge = {"code_challenge": challenge_of(_VERIFIER), "code_challenge_method": "S256"}
        asking = {"response_type": "code", "state": "s", "scope": "orders.read", **challenge}
        page = _checked(await self._http.get("/oauth/authorize", params=self._client | asking), 200)
        self._form = filled_in(page.text, "") | {"decision": "allow"}

    async def _consent(self) -> None:
        answer = await self._http.post("/oauth/consent", data=self._form, headers={"origin": self._origin})
        self._provider = _checked(answer, 302, 303).headers["location"]

    async def _callback(self) -> None:
        returned = await browse(self._provider, user=self._user, back=f"{self._origin}/oauth/callback")
        answer = _checked(await self._http.get("/oauth/callback", params=returned), 302, 303)
        self._code = dict(parse_qsl(urlsplit(answer.headers["location"]).query))["code"]

    async def _exchange(self) -> None:
        await self._get_tokens(grant_type="authorization_code", code=self._code, code_verifier=_VERIFIER)

    async def _refresh(self) -> None:
        await self._get_tokens(grant_type="refresh_token", refresh_token=self.tokens["refresh_token"])

    async def _get_tokens(self, **grant: str) -> None:
        self.tokens = _checked(await self._http.post("/oauth/token", data=self._client | grant), 200).json()


def _checked(answer: httpx2.Response, *statuses: int) -> httpx2.Response:
    if answer.status_code not in statuses:
        raise RefusedError(answer.status_code)
    return answer
