"""The sample with an audit log."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING

from funcmcp.testing import Client

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


async def test_each_call_leaves_two_lines_without_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = importlib.import_module("samples.audit_log.server")
    monkeypatch.setattr(sample, "FILE", tmp_path / "audit.jsonl")
    async with Client(sample.mcp) as client:
        await client.list_tools()
        await client.call_tool("transfer", {"amount": 5, "to": "secret-account"})
        await client.call_tool("transfer", {"amount": -5, "to": "secret-account"})
    text = (tmp_path / "audit.jsonl").read_text()
    assert "secret-account" not in text
    entries = [json.loads(line) for line in text.splitlines()]
    assert [(entry["tool"], entry["event"]) for entry in entries] == [
        ("transfer", "called"),
        ("transfer", "succeeded"),
        ("transfer", "called"),
        ("transfer", "failed"),
    ]
