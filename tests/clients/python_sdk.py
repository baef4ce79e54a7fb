"""Plays a plan with the official Python SDK."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import Client, MCPDeprecationWarning, MCPError

from tests.clients.plan import Call, Played

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.client import ClientRequestContext
    from mcp.client.session import IncomingMessage
    from pydantic import BaseModel

    from tests.clients.plan import Step, Target

_PER_REQUEST = "2026-07-28"
_READ_SECONDS = 20
_HEAR_SECONDS = 20


async def play_python(target: Target, mode: str, plan: Sequence[Step]) -> Played:
    """Play with the official Python SDK; the mode is "legacy" (handshake era), "auto", or a revision."""
    with warnings.catch_warnings():
        # What 2026-07-28 has no longer, the SDK warns of in the handshake era too.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        player = _Player()
        options: Any = {
            "mode": mode,
            "elicitation_callback": player.elicit,
            "sampling_callback": player.sample,
            "list_roots_callback": player.list_roots,
            "message_handler": player.hear,
            "log_level": "debug",
            "read_timeout_seconds": _READ_SECONDS,
        }
        async with Client(target.for_python(), **options) as client, AsyncExitStack() as opened:
            listed = await client.list_tools()
            for step in plan:
                player.begin(step)
                await player.play(client, opened, step)
            tools = [_plain(tool) for tool in listed.tools]
            return Played(client.protocol_version, {tool["name"]: tool for tool in tools}, player.calls)


class _Player:
    """Plays steps, and is what the client calls back."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._answers: dict[str, dict[str, Any]] = {}
        self._heard: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    def begin(self, step: Step) -> None:
        """Make ready for what comes of a step."""
        self.calls.append(Call())
        self._answers = step.answers

    async def play(self, client: Client, opened: AsyncExitStack, step: Step) -> None:
        """Do what a step says."""
        call = self.calls[-1]
        with anyio.CancelScope() as scope:

            async def note_progress(progress: float, total: float | None, message: str | None) -> None:
                call.progress.append({"progress": progress, "total": total, "message": message})
                if step.cancel:
                    scope.cancel()

            try:
                if step.method == "tools/call":
                    result = await client.call_tool(**step.params, progress_callback=note_progress)
                    call.result = _plain(result)
                elif step.method == "watch":
                    await _watch(client, opened, step.params)
                elif step.method == "hear":
                    call.result = await self._hear(client, step.params)
                else:
                    call.result = await _request(client, step.method, step.params)
            except MCPError as error:
                call.error = {"code": error.code, "message": error.message}

    async def elicit(self, _context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answer a form."""
        return types.ElicitResult.model_validate(self._answer("elicitation/create", _plain(params)))

    async def sample(
        self, _context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        """Answer for the model."""
        return types.CreateMessageResult.model_validate(self._answer("sampling/createMessage", _plain(params)))

    async def list_roots(self, _context: ClientRequestContext) -> types.ListRootsResult:
        """Tell the roots."""
        return types.ListRootsResult.model_validate(self._answer("roots/list", {}))

    async def hear(self, message: IncomingMessage) -> None:
        """Note a notification."""
        if isinstance(message, Exception):
            raise message
        if not isinstance(message, types.ProgressNotification):
            self._heard.append(_plain(message))
            self._news.set()

    def _answer(self, method: str, question: dict[str, Any]) -> dict[str, Any]:
        self.calls[-1].questions.append(question)
        return self._answers[method]

    async def _hear(self, client: Client, params: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(_HEAR_SECONDS):
            while not all(any(_fits(heard, wanted) for heard in self._heard) for wanted in params["wanted"]):
                self._news.clear()
                for name in params["again"]:
                    await client.call_tool(name)
                try:
                    async with asyncio.timeout(1):
                        await self._news.wait()
                except TimeoutError:
                    continue
        heard, self._heard = self._heard, []
        return {"heard": heard}


async def _watch(client: Client, opened: AsyncExitStack, wish: dict[str, Any]) -> None:
    """Ask for changes: of lists, the handshake era tells unasked."""
    uris = wish.get("resourceSubscriptions", [])
    if client.protocol_version != _PER_REQUEST:
        for uri in uris:
            await client.subscribe_resource(uri)
        return
    await opened.enter_async_context(
        client.listen(
            tools_list_changed=wish.get("toolsListChanged", False),
            prompts_list_changed=wish.get("promptsListChanged", False),
            resources_list_changed=wish.get("resourcesListChanged", False),
            resource_subscriptions=uris,
        )
    )


async def _request(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Send a request by the client's method for it; None where its era has no such request."""
    removed = client.protocol_version == _PER_REQUEST
    if method == "completion/complete":
        ref = params["ref"]
        kind = types.PromptReference if ref["type"] == "ref/prompt" else types.ResourceTemplateReference
        known = params.get("context", {}).get("arguments")
        return _plain(await client.complete(kind.model_validate(ref), params["argument"], known))
    if method == "logging/setLevel":
        return None if removed else _plain(await client.set_logging_level(params["level"]))
    if method == "resources/unsubscribe":
        return None if removed else _plain(await client.unsubscribe_resource(params["uri"]))
    methods: dict[str, Any] = {
        "prompts/list": client.list_prompts,
        "prompts/get": client.get_prompt,
        "resources/list": client.list_resources,
        "resources/templates/list": client.list_resource_templates,
        "resources/read": client.read_resource,
    }
    return _plain(await methods[method](**params))


def _plain(value: BaseModel) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def _fits(heard: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Tell whether a notification has the method and the params of the one that is waited for."""
    params: dict[str, Any] = heard.get("params") or {}
    wished: dict[str, Any] = wanted["params"]
    return heard["method"] == wanted["method"] and wished.items() <= params.items()
