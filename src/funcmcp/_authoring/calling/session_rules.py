"""Rules that hide and show features in the session of a call: `Context.enable` and `Context.disable`.

The rules are in the conversation of the session, which lives in one process. Where requests of a session may reach
another process, or nothing keeps the session, there are none: a feature that is hidden in one of two processes would
come and go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.visibility import Visibility
from funcmcp._server.connections.hub import PROMPTS, RESOURCES, TOOLS

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.visibility import Rule
    from funcmcp._server.connections.conversation import Conversation

MAX_RULES = 100
"""Rules of one session."""

LISTS = {"tool": TOOLS, "resource": RESOURCES, "template": RESOURCES, "prompt": PROMPTS}
"""The change of the list that has features of a kind."""


async def change_rules(context: RequestContext, rule: Rule | None) -> None:
    """Add a rule to the session of a call, or with None remove all of them, and notify its client; raise ToolError."""
    conversation = ruled_conversation(context)
    rules = conversation.rules
    if rule is None:
        conversation.rules = None
    else:
        if not isinstance(rules, Visibility):
            rules = Visibility()
        if len(rules) >= MAX_RULES:
            raise ToolError(f"This session has {MAX_RULES} rules of visibility. Reset them before you add others.")
        rules.add(rule)
        conversation.rules = rules
    kinds = LISTS.keys() if rule is None or rule.kinds is None else rule.kinds
    for change in dict.fromkeys(LISTS[kind] for kind in LISTS if kind in kinds):
        await context.notify(change.method, change.params)


def ruled_conversation(context: RequestContext) -> Conversation:
    """Return the conversation of the session of a call; raise ToolError if it can't keep rules."""
    conversation = context.client.conversation
    if context.task_id is not None:
        raise ToolError("A task has no session whose features could be hidden or shown.")
    if context.client.revision.per_request or conversation is None:
        revision = context.client.revision.date
        raise ToolError(f"Features can be hidden and shown in a session only, and clients of {revision} have none.")
    if not conversation.pushes or conversation.keeper is not None:
        raise ToolError(
            'The sessions of this server keep no rules of visibility. They need MCPServer(sessions="memory"), stdio, '
            "WebSocket or HTTP+SSE."
        )
    return conversation
