"""The rules about function apps, and what they find in one.

`funcmcp doctor` applies them to every app, `funcmcp host` at the start of an app and when its files have changed. The
table in docs/guides/functions-host.md is made from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp_host.app_rules import access_rules, handler_rules, node_rules, setting_rules, trigger_rules
from funcmcp_host.app_rules.rule import Breach

if TYPE_CHECKING:
    from funcmcp_host.app_rules.model import App

RULES = (
    *trigger_rules.RULES,
    *node_rules.RULES,
    *handler_rules.RULES,
    *access_rules.RULES,
    *setting_rules.RULES,
)


def breaches_of(app: App) -> list[Breach]:
    """Return what the rules find in an app, each finding once."""
    breaches = [Breach(rule, subject, text) for rule in RULES for subject, text in rule.check(app)]
    return list(dict.fromkeys(breaches))
