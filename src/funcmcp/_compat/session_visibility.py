"""Which components one client sees: `Context.enable_components`, `disable_components` and `reset_visibility`.

How it works: a `ClientRules` has the rules of all clients of a server in this process by what identifies a client, and
the first middleware of the server applies them to each request. A session is identified by its id; a connection without
one, such as stdio, keeps the rules itself, as those of funcmcp's own `Context.enable`, but those of mounted servers.
Clients of 2026-07-28 have no session. As in FastMCP, their rules are those of the authenticated user, or of the process
on stdio.

A server above a mounted one asks the rules of both. It gets the features that the mounted server hides when the first
client is to see one of them (`ClientRules.on_show`).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from funcmcp._auth.owner import owner_of
from funcmcp._authoring.calling.session_rules import LISTS, MAX_RULES, change_rules, ruled_conversation
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.visibility import Visibility

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from funcmcp._compat.visibility import ComponentRule
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.connections.conversation import Conversation, Rules
    from funcmcp._server.dispatch import Server

MAX_OWNERS = 10_000
"""Owners whose rules a process keeps. Those that were used least recently are dropped."""

_NO_CLIENT = (
    "Session visibility rules are scoped to a client, and this request has none: it is not authenticated, and HTTP "
    "connections of MCP 2026-07-28 have no session. Add authentication to the server to scope rules to each user."
)


class ClientRules:
    """The rules of clients without sessions, by owner."""

    def __init__(self) -> None:
        self._rules: OrderedDict[str, Visibility] = OrderedDict()
        self._of_connections: WeakKeyDictionary[Conversation, Visibility] = WeakKeyDictionary()
        self._listeners: list[Callable[[], None]] = []
        self._has_shown = False

    def on_show(self, listener: Callable[[], None]) -> None:
        """Call a function before the first client sees a component that is hidden from others."""
        self._listeners.append(listener)
        if self._has_shown:
            listener()

    def of(self, request: RequestContext) -> Visibility | None:
        """Return the rules for a request; None if there are none."""
        conversation = request.client.conversation
        if conversation is not None and conversation in self._of_connections:
            return self._of_connections[conversation]
        key = _key_of(request) if self._rules else None
        if key is None or key not in self._rules:
            return None
        self._rules.move_to_end(key)
        return self._rules[key]

    async def change(self, request: RequestContext, rule: ComponentRule | None) -> None:
        """Add a rule for the client of a request, or with None remove all of them, and notify the client.

        Raises:
            RuntimeError: Nothing identifies the client.
            ToolError: The session can't keep rules, or the client has too many.
        """
        key = _key_of(request)
        if key is None and request.client.revision.per_request:
            raise RuntimeError(_NO_CLIENT)
        if rule is not None and rule.shows:
            self._prepare_to_show()
        if key is None and request.outer is None:
            await change_rules(request, rule)
            return
        if key is None:
            request.rules = _changed(self._of_connections, ruled_conversation(request), rule)
        else:
            request.rules = _changed(self._rules, key, rule)
            while len(self._rules) > MAX_OWNERS:
                self._rules.popitem(last=False)
        kinds = None if rule is None else rule.kinds
        for change in dict.fromkeys(LISTS[kind] for kind in LISTS if kinds is None or kind in kinds):
            await request.notify(change.method, change.params)

    def _prepare_to_show(self) -> None:
        if not self._has_shown:
            self._has_shown = True
            for listener in self._listeners:
                listener()


def _changed(rules: MutableMapping[Any, Visibility], key: object, rule: ComponentRule | None) -> Visibility | None:
    """Add a rule to those of a key, or with None remove them all; return the rules; raise ToolError for too many."""
    if rule is None:
        rules.pop(key, None)
        return None
    client_rules = rules.setdefault(key, Visibility())
    if len(client_rules) >= MAX_RULES:
        raise ToolError(f"This client has {MAX_RULES} rules of visibility. Reset them before you add others.")
    client_rules.add(rule)
    return client_rules


def _key_of(request: RequestContext) -> str | None:
    """Return whose rules hold for a request; None if nothing but its connection identifies the client."""
    if not request.client.revision.per_request:
        session_id = request.client.session_id
        return None if session_id is None else f"session {session_id}"
    if request.principal is not None:
        return f"user {owner_of(request.principal)}"
    return "process" if request.http is None else None


def rules_of(request: RequestContext) -> Rules | None:
    """Return the rules for the client of a request; None if it sees what other clients see."""
    conversation = request.client.conversation
    if request.rules is not None:
        return request.rules
    return None if conversation is None else conversation.rules


async def apply_rules(server: Server, request: RequestContext, rules: Rules, *, by_author: bool) -> None:
    """Show the components of rules to a request.

    Args:
        server: The server.
        request: The request.
        rules: The rules.
        by_author: Whether it is a call of the server's author, who may use every component.
    """
    request.rules = rules
    if by_author:
        from funcmcp._server.catalog.session_view import SessionView  # noqa: PLC0415 - few sessions have rules

        request.routed = SessionView(rules, server.catalog).route(request.routed)
    else:
        request.routed = await server.resolve_in_session(request.routed, rules, request.http)


def as_dicts(rules: Rules | None) -> list[dict[str, Any]]:
    """Return rules in the form that FastMCP stores."""
    if not isinstance(rules, Visibility):
        return []
    return [_as_dict(rule) for rule in rules.rules]


def _as_dict(rule: Any) -> dict[str, Any]:
    version = rule.version
    return {
        "enabled": rule.shows,
        "names": _listed(rule.names),
        "keys": _listed(rule.keys),
        "version": None if version is None else {"gte": version.gte, "lt": version.lt, "eq": version.eq},
        "tags": _listed(rule.rule.tags),
        "components": _listed(rule.kinds),
        "match_all": rule.match_all,
    }


def _listed(values: frozenset[str] | None) -> list[str] | None:
    return None if values is None else sorted(values)
