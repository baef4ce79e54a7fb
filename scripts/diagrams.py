"""Draw the diagrams of the documentation in docs/images. Run it with ``make pictures``.

A diagram has parties beside each other and steps below each other: a message from one party to another, a note at a
party, or a heading that begins a new part. `tests/docs/test_pictures.py` compares the files with what this draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

FOLDER = Path(__file__).parents[1] / "docs" / "images"
_WIDTH, _MARGIN, _STEP, _TOP = 190, 14, 40, 64
_INK, _FAINT, _BOX, _NOTE, _PAPER = "#1b2a3a", "#9aa7b4", "#dceafc", "#fdf3d3", "#ffffff"


@dataclass(frozen=True)
class Message:
    """A message from one party to another."""

    source: str
    target: str
    text: str


@dataclass(frozen=True)
class Note:
    """What a party does."""

    party: str
    text: str


@dataclass(frozen=True)
class Part:
    """The heading of the steps that follow."""

    text: str


Step: TypeAlias = Message | Note | Part


@dataclass(frozen=True)
class Diagram:
    """A diagram.

    Attributes:
        title: For screen readers.
        parties: From left to right.
        steps: From top to bottom.
    """

    title: str
    parties: tuple[str, ...]
    steps: tuple[Step, ...]


DIAGRAMS = {
    "way-of-a-call.svg": Diagram(
        "The way of a call through a server",
        ("client", "transport", "protocol", "your function"),
        (
            Message("client", "transport", "tools/call"),
            Note("transport", "Host, Origin, size, credentials, rate"),
            Message("transport", "protocol", "one message"),
            Note("protocol", "revision, session, access"),
            Note("protocol", "middleware, validation"),
            Message("protocol", "your function", "typed arguments"),
            Note("your function", "event loop, or a thread"),
            Message("your function", "protocol", "a value or an exception"),
            Message("protocol", "transport", "content of this revision"),
            Message("transport", "client", "JSON, or events"),
        ),
    ),
    "two-eras.svg": Diagram(
        "The same call with a question in both eras of the protocol",
        ("client", "server"),
        (
            Part("handshake era, until 2025-11-25"),
            Message("client", "server", "initialize"),
            Message("server", "client", "Mcp-Session-Id"),
            Message("client", "server", "tools/call"),
            Message("server", "client", "question on the stream"),
            Message("client", "server", "answer"),
            Message("server", "client", "result"),
            Part("2026-07-28: no session"),
            Message("client", "server", "tools/call"),
            Message("server", "client", "input_required + state"),
            Message("client", "server", "tools/call + answer"),
            Message("server", "client", "result"),
        ),
    ),
    "azure-hostings.svg": Diagram(
        "Three ways to host a server on Azure Functions",
        ("client", "Functions host", "your code"),
        (
            Part("own endpoint (http)"),
            Message("client", "Functions host", "POST /mcp"),
            Message("Functions host", "your code", "HTTP trigger"),
            Note("your code", "MCPServer speaks MCP"),
            Part("Azure's MCP triggers (triggers)"),
            Message("client", "Functions host", "/runtime/webhooks/mcp"),
            Note("Functions host", "its extension speaks MCP"),
            Message("Functions host", "your code", "one tool call"),
            Part("custom handler (self-hosted)"),
            Message("client", "Functions host", "POST /mcp"),
            Message("Functions host", "your code", "HTTP, unchanged"),
            Note("your code", "a server of its own"),
        ),
    ),
    "sign-in.svg": Diagram(
        "How a client signs in",
        ("client", "MCP server", "authorization server"),
        (
            Message("client", "MCP server", "tools/call"),
            Message("MCP server", "client", "401 + resource_metadata"),
            Message("client", "MCP server", "GET the metadata"),
            Message("MCP server", "client", "authorization_servers"),
            Message("client", "authorization server", "sign-in in the browser"),
            Message("authorization server", "client", "access token"),
            Message("client", "MCP server", "tools/call + token"),
            Note("MCP server", "issuer, audience, scopes"),
            Message("MCP server", "client", "result"),
        ),
    ),
    "scaling.svg": Diagram(
        "A session that two copies of a server serve",
        ("client", "proxy", "copy 1", "copy 2"),
        (
            Message("client", "proxy", "initialize"),
            Message("proxy", "copy 1", "initialize"),
            Note("copy 1", "seals the session"),
            Message("copy 1", "client", "Mcp-Session-Id"),
            Message("client", "proxy", "tools/call + id"),
            Message("proxy", "copy 2", "tools/call + id"),
            Note("copy 2", "same key: opens it"),
            Message("copy 2", "client", "result"),
        ),
    ),
}


def draw(diagram: Diagram) -> str:
    """Return a diagram as SVG."""
    columns = {party: _MARGIN + _WIDTH * index + _WIDTH // 2 for index, party in enumerate(diagram.parties)}
    width = 2 * _MARGIN + _WIDTH * len(diagram.parties)
    height = _TOP + _STEP * len(diagram.steps) + _MARGIN
    title = escape(diagram.title)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    font = 'font-family="Verdana, DejaVu Sans, sans-serif"'
    arrow = 'id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}" {font}>',
        f"<title>{title}</title>",
        f'<defs><marker {arrow}><path d="M0 0L8 4L0 8z" fill="{_INK}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="8" fill="{_PAPER}"/>',
    ]
    for party, x in columns.items():
        parts.append(_line(x, 44, x, height - _MARGIN, _FAINT, 'stroke-dasharray="3 4"'))
        parts.append(_box(x, 26, _WIDTH - 24, 30, _BOX))
        parts.append(_text(x, 31, party, 13, "bold"))
    for index, step in enumerate(diagram.steps):
        parts.extend(_step(step, columns, width, _TOP + _STEP * index + _STEP // 2))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _step(step: Step, columns: dict[str, int], width: int, y: int) -> list[str]:
    if isinstance(step, Message):
        start, end = columns[step.source], columns[step.target]
        tip = end - 2 if end > start else end + 2
        middle = (start + end) // 2
        back = f'<rect x="{middle - 80}" y="{y - 18}" width="160" height="13" fill="{_PAPER}" fill-opacity="0.85"/>'
        return [back, _text(middle, y - 7, step.text, 11), _line(start, y, tip, y, _INK, 'marker-end="url(#arrow)"')]
    if isinstance(step, Note):
        x = columns[step.party]
        return [_box(x, y - 4, _WIDTH - 10, 24, _NOTE), _text(x, y, step.text, 10)]
    return [
        _box(width // 2, y - 2, width - 2 * _MARGIN, 24, "#eef1f4"),
        _text(width // 2, y + 2, step.text, 12, "bold"),
    ]


def _box(x: int, y: int, width: int, height: int, fill: str) -> str:
    return (
        f'<rect x="{x - width // 2}" y="{y - height // 2}" width="{width}" height="{height}" rx="5" fill="{fill}" '
        f'stroke="{_FAINT}"/>'
    )


def _text(x: int, y: int, text: str, size: int, weight: str = "normal") -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="middle" fill="{_INK}">'
        f"{escape(text)}</text>"
    )


def _line(x1: int, y1: int, x2: int, y2: int, colour: str, more: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="1.3" {more}/>'


if __name__ == "__main__":
    for name, diagram in DIAGRAMS.items():
        (FOLDER / name).write_text(draw(diagram), encoding="utf-8")
