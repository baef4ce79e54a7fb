"""Severities of log messages, the least severe first.

Source: RFC 5424; "server/utilities/logging" of every revision.
"""

from __future__ import annotations

LEVELS: dict[str, int] = {
    level: severity
    for severity, level in enumerate(("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"))
}
