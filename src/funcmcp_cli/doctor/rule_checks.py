"""What the rules for function apps find, and what is right by them, as findings of ``funcmcp doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at
from funcmcp._text.listing import counted
from funcmcp_cli.doctor.project import Finding
from funcmcp_host.app_rules.access_rules import is_open, levels_of
from funcmcp_host.app_rules.handler_rules import invoked_functions
from funcmcp_host.app_rules.table import breaches_of
from funcmcp_host.app_rules.trigger_rules import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from funcmcp_host.app_rules.model import App
    from funcmcp_host.app_rules.rule import Breach


def check_rules(app: App, breaches: Sequence[Breach] | None = None) -> Iterator[Finding]:
    """Yield the findings about an app.

    Args:
        app: The app.
        breaches: What the functions host has found in it; None to look here.
    """
    breaches = breaches_of(app) if breaches is None else breaches
    for breach in breaches:
        yield Finding(breach.rule.level, breach.subject, breach.text)
    broken = {breach.rule.group for breach in breaches}
    if app.mcp_functions and "triggers" not in broken and not dict(unreadable(app)):
        functions = counted(len(app.mcp_functions), "function")
        yield Finding("ok", "triggers", f"of {functions} are as Azure reads them.")
    if app.mcp_functions and at(app.host, "extensionBundle") is not None and "settings" not in broken:
        yield Finding("ok", "extensionBundle", "has Azure's MCP extension.")
    if app.has_custom_handler and "handler" not in broken:
        yield _right_handler(app)
    if levels_of(app) and "access" not in broken:
        text = "asks callers to sign in." if is_open(app) else "needs a key of the app."
        yield Finding("ok", "access", text)


def _right_handler(app: App) -> Finding:
    program = at(app.host, "customHandler", "description", "defaultExecutablePath")
    sends = "sends it invocations as JSON" if invoked_functions(app) else "forwards requests to it"
    return Finding("ok", "customHandler", f"starts {program} and {sends}.")
