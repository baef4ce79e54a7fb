"""A made-up revision after the newest one, and a server for a process of its own that may have it.

The revision has what a real one may bring: the method ``tools/search``, the capability ``search``, the member
``staleMs`` of lists, and the header ``Mcp-Query``, which repeats ``params.query``.

A process that has not called `add` is as old as the release before that revision.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from funcmcp._protocol.methods import Method, RepeatedMember
from funcmcp._protocol.revisions import NEWEST, REVISIONS, Revision

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from funcmcp import MCPServer
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.routes import Routes

NEXT = "2099-01-01"
VARIABLE = "NEXT_REVISION_OF_TEST"
"""Whether a process has the revision: ``released``, or ``draft``. Otherwise the process is an old one."""


class Search:
    """The handler of ``tools/search``, in the place of a module in `_server/handlers/`."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes

    async def search(self, context: RequestContext) -> dict[str, Any]:
        """Answer with the names of the tools that contain the query."""
        tools = self._routes.lists["tools/list"].registry
        return {"tools": [tool.name for tool in tools if context.request.params["query"] in tool.name]}


class Change(NamedTuple):
    """What a revision changes in a module: rows of a table, or the method that returns the routes."""

    module: str
    table: str
    rows: dict[str, Any] | None


def changes(*, draft: bool = False) -> list[Change]:
    """Return all that the revision changes in the library, beside its handler."""
    columns = {name: getattr(REVISIONS[NEWEST], name) for name in Revision.__annotations__}
    columns["capabilities"] |= {"search"}
    columns["cache_members"] = (*columns["cache_members"], "staleMs")
    revision = Revision(**{**columns, "date": NEXT, "draft": draft})
    query = RepeatedMember("query", "mcp-query")
    method = Method("tools/search", "search", since=NEXT, repeats=(query,), is_always_offered=True)
    return [
        Change("funcmcp._protocol.revisions", "REVISIONS", {NEXT: revision}),
        Change("funcmcp._protocol.methods", "METHODS", {method.name: method}),
        Change("funcmcp._server.results", "CACHE_MEMBERS", {"staleMs": lambda ttl, _: 2 * ttl}),
        Change("funcmcp._server.routes", "Routes._rows", None),
    ]


@contextmanager
def added(*, draft: bool = False) -> Iterator[None]:
    """Add the revision to the tables of this process, as a draft or as a released one."""
    with ExitStack() as stack:
        for module, table, rows in changes(draft=draft):
            if rows is None:
                stack.enter_context(patch(f"{module}.{table}", _with_search()))
            else:
                stack.enter_context(patch.dict(f"{module}.{table}", rows))
        yield


def _with_search() -> Any:
    # Imported here, because the tables have to be complete before a server is imported.
    from funcmcp._server.calls.route import Audience, Interactivity
    from funcmcp._server.routes import Routes

    rows_before = Routes._rows

    def rows(routes: Routes) -> list[Any]:
        search = Search(routes).search
        return [*rows_before(routes), ("tools/search", search, Audience.LIST, None, Interactivity.NEVER)]

    return rows


def server_of(revisions: Sequence[str] | None = None) -> MCPServer:
    """Return a server that serves some revisions; None for those of a server without the option."""
    from funcmcp import MCPServer, ProtocolOptions

    mcp = MCPServer("Dated", protocol=ProtocolOptions() if revisions is None else ProtocolOptions(revisions=revisions))

    @mcp.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return mcp


if VARIABLE in os.environ:
    until_exit = ExitStack()
    if os.environ[VARIABLE]:
        until_exit.enter_context(added(draft=os.environ[VARIABLE] == "draft"))
    mcp = server_of()

if __name__ == "__main__":
    mcp.run("stdio")
