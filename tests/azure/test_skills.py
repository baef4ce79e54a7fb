"""Skills of a function app, through its HTTP trigger and Microsoft's worker library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPError
from funcmcp.client import Client
from tests.azure.serving import serve_app, write_app
from tests.azure.worker import needs_worker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Microsoft's worker library is for Python 3.13.")

APP = """
from pathlib import Path

import funcmcp.azure
from funcmcp import MCPServer

mcp = MCPServer("shop")
mcp.add_skills(Path(__file__).parent / "skills")
app = funcmcp.azure.http_app(mcp)
"""
MANIFEST = b"---\nname: deploy\ndescription: Deploy\n---\n\n# Deploy\n"


@needs_worker
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_function_app_serves_the_skills_in_its_package(tmp_path: Path, revision: str) -> None:
    folder = write_app(tmp_path / "app", APP)
    (folder / "skills/deploy/assets").mkdir(parents=True)
    (folder / "skills/deploy/SKILL.md").write_bytes(MANIFEST)
    (folder / "skills/deploy/assets/logo.png").write_bytes(b"\x89PNG\0")
    with serve_app(folder) as served:
        async with Client(served.url, revision=revision) as client:
            [skill] = await client.list_skills()
            assert (await client.read_skill(skill)).data == MANIFEST
            assert (await client.read_skill(skill, "assets/logo.png")).data == b"\x89PNG\0"
            assert [item.name for item in await client.list_folder("skill://deploy")] == ["deploy", "assets"]
            with pytest.raises(MCPError):
                await client.read_resource("skill://deploy/../../host.json")
