"""`initialize`, `server/discover`, `ping` and `logging/setLevel`, and the capabilities that a server declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._auth.owner import lists_tasks
from funcmcp._objects.mappings import only
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.extensions import extensions_in
from funcmcp._protocol.levels import LEVELS
from funcmcp._protocol.revisions import handshake_revision
from funcmcp._state.sessions.store import Handshake

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.handlers.lists import Provided
    from funcmcp._server.results import Results

MAX_CLIENT_BYTES = 8192
"""Bytes of the client's info and capabilities, which a session keeps."""


def negotiate(params: dict[str, Any], revisions: Mapping[str, Revision], *, owner: str | None = None) -> Handshake:
    """Return the handshake that an `initialize` request leads to.

    The client gets the revision that it requests if the server has it, else the newest one of the handshake era.

    Args:
        params: The params of the request.
        revisions: The revisions that the server speaks, by date.
        owner: The owner of the session.

    Raises:
        InvalidParams: The params are invalid, or the server has no revision with a handshake.
    """
    requested = params.get("protocolVersion")
    if type(requested) is not str:
        raise InvalidParams('"protocolVersion" must be a string such as "2025-11-25".')
    for member in ("capabilities", "clientInfo"):
        if type(params.get(member, {})) is not dict:
            raise InvalidParams(f'"{member}" must be an object.')
    client_capabilities, client_info = params.get("capabilities", {}), params.get("clientInfo", {})
    if len(encode([client_capabilities, client_info])) > MAX_CLIENT_BYTES:
        raise InvalidParams(f'"capabilities" and "clientInfo" may have {MAX_CLIENT_BYTES} bytes together.')
    revision = handshake_revision(revisions, requested)
    if revision is None:
        raise InvalidParams("This server needs no initialize.", {"supported": sorted(revisions, reverse=True)})
    return Handshake(revision.date, client_capabilities, client_info, owner)


class Lifecycle:
    """Answers requests about the server and the conversation.

    Args:
        catalog: The features, from which the capabilities follow.
        results: Completes results, and has the instructions for the model.
        revisions: Dates of the revisions that the server speaks, newest first.

    Attributes:
        provided: The features that are computed at run time, which may come with instructions; None if there are none.
    """

    provided: Provided | None = None

    def __init__(self, catalog: Catalog, results: Results, revisions: list[str]) -> None:
        self._catalog = catalog
        self._results = results
        self._revisions = revisions

    async def initialize(self, context: RequestContext) -> dict[str, Any]:
        """Answer `initialize`, whose handshake the transport has negotiated: the context's client has its revision."""
        if self.provided is not None:
            await self.provided.settle()
        revision, conversation = context.client.revision, context.client.conversation
        pushes = conversation is not None and conversation.pushes
        result: dict[str, Any] = {
            "protocolVersion": revision.date,
            "capabilities": capabilities(
                self._catalog, revision, pushes=pushes, lists_tasks=lists_tasks(context.principal)
            ),
            "serverInfo": self._results.implementation(revision),
        }
        return await self._with_instructions(result)

    async def discover(self, context: RequestContext) -> dict[str, Any]:
        """Answer `server/discover`."""
        if self.provided is not None:
            await self.provided.settle()
        revision = context.client.revision
        streams = context.http is None or context.http.can_stream  # subscriptions/listen needs a stream
        result: dict[str, Any] = {
            "supportedVersions": self._revisions,
            "capabilities": capabilities(self._catalog, revision, pushes=streams),
        }
        result = self._results.cacheable(result, revision, self._results.list_ttl)
        return await self._with_instructions(result)

    async def _with_instructions(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result with the instructions of the server, and those that come with provided features."""
        texts = [] if self._results.instructions is None else [self._results.instructions]
        if self.provided is not None:
            texts += await self.provided.instructions()
        if texts:
            result["instructions"] = "\n\n".join(texts)
        return result

    async def ping(self, _context: RequestContext) -> dict[str, Any]:
        """Answer `ping`."""
        return {}

    async def set_level(self, context: RequestContext) -> dict[str, Any]:
        """Answer `logging/setLevel`: keep the lowest level of the log messages that the client wants."""
        level = context.request.params.get("level")
        if type(level) is not str or level not in LEVELS:
            raise InvalidParams(f'"level" must be one of {", ".join(LEVELS)}.')
        await context.set_log_level(level)
        return {}


_LISTS = ("prompts", "resources", "tools")


def capabilities(catalog: Catalog, revision: Revision, *, pushes: bool, lists_tasks: bool = False) -> dict[str, Any]:
    """Return the ServerCapabilities.

    Args:
        catalog: The features of the server.
        revision: The revision of the answer; members that it does not have are left out.
        pushes: Whether notifications about changes can reach the client.
        lists_tasks: Whether the client can list its tasks.
    """
    declared: dict[str, Any] = {name: {} for name in sorted(catalog.offered)}
    if pushes:
        for name in _LISTS:
            if name in declared:
                declared[name]["listChanged"] = True
        if "subscriptions" in declared:
            declared["resources"]["subscribe"] = True
    if "tasks" in declared:
        declared["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        if lists_tasks:
            declared["tasks"]["list"] = {}
    extensions = _extensions(catalog, revision)
    if extensions:
        declared["extensions"] = extensions
    if revision.per_request and not catalog.has_interactive:
        declared.pop("logging", None)  # 2026-07-28 deprecates it, so only a server that may log declares it
    return only(declared, revision.capabilities)


def _extensions(catalog: Catalog, revision: Revision) -> dict[str, Any]:
    """Return the extensions that the server has in a revision, with their settings."""
    own = {row.identifier: dict(row.settings) for row in extensions_in(revision.date) if row.feature in catalog.offered}
    return {**own, **catalog.extensions}
