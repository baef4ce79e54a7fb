"""Severities of log messages, least severe first (RFC 5424, as every revision's "utilities/logging" lists them)."""

from __future__ import annotations

LEVELS: dict[str, int] = {
    level: severity
    for severity, level in enumerate(("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"))
}
