"""The manifest of a bundle: what a project says is in it, in the form of its schema."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from funcmcp import MCPServer, ServerInfo
from funcmcp_cli.bundle.documents import Description, describe, manifest_for, pyproject_for
from funcmcp_cli.bundle.project import BundleOptions, Project, Setting
from funcmcp_cli.failure import Failure

INFO = ServerInfo(description="Looks up orders")
SERVER = MCPServer("Order Desk", info=INFO)
KEY = Setting("ORDERS_KEY", "Key", "The key of the API", secret=True, required=True)
FOLDER = Setting("ORDERS_FOLDER", type="directory", default="${HOME}/orders")
METADATA: dict[str, Any] = {
    "name": "Orders_MCP",
    "version": "1.2",
    "description": "Look up orders. " * 10,
    "authors": [{"email": "only@example.com"}, {"name": "Ada", "email": "ada@example.com"}],
    "license": "MIT",
    "keywords": ["orders"],
    "requires-python": ">=3.11",
    "urls": {
        "Source": "https://github.com/acme/orders",
        "Homepage": "https://acme.example",
        "Docs": "https://d.example",
        "Privacy": "https://acme.example/privacy",
    },
    "scripts": {"orders_mcp": "server:mcp.run"},
}


def described(metadata: dict[str, Any], **options: Any) -> tuple[Project, Description]:
    project = Project(Path("/project"), metadata, BundleOptions(**options))
    return project, describe(project, SERVER, INFO, "3.0")


def test_the_manifest_has_what_the_project_says() -> None:
    project, description = described(METADATA, title="Orders", icon="icon.png", settings=(KEY, FOLDER))
    manifest = manifest_for(project, description, None, has_prompts=True)
    assert manifest["server"].pop("mcp_config")["env"] == {
        "ORDERS_KEY": "${user_config.orders_key}",
        "ORDERS_FOLDER": "${user_config.orders_folder}",
    }
    assert manifest == {
        "manifest_version": "0.4",
        "name": "orders_mcp",
        "display_name": "Orders",
        "version": "1.2",
        "description": METADATA["description"].strip(),
        "author": {"name": "Ada", "email": "ada@example.com"},
        "repository": {"type": "git", "url": "https://github.com/acme/orders"},
        "homepage": "https://acme.example",
        "documentation": "https://d.example",
        "icon": "icon.png",
        "server": {"type": "uv", "entry_point": "start_server.py"},
        "tools_generated": True,
        "prompts_generated": True,
        "keywords": ["orders"],
        "license": "MIT",
        "privacy_policies": ["https://acme.example/privacy"],
        "compatibility": {"platforms": ["darwin", "linux", "win32"], "runtimes": {"python": ">=3.11"}},
        "user_config": {
            "orders_key": {
                "type": "string", "title": "Key", "description": "The key of the API", "required": True,
                "sensitive": True,
            },
            "orders_folder": {
                "type": "directory", "title": "ORDERS_FOLDER", "required": False, "default": "${HOME}/orders",
                "description": "The environment variable ORDERS_FOLDER.",
            },
        },
    }  # fmt: skip


def test_the_server_says_what_the_project_does_not() -> None:
    _, description = described({}, author="Ada")
    assert description == Description("order-desk", "Order Desk", "3.0", "Looks up orders", {"name": "Ada"}, {})
    with pytest.raises(Failure, match="The author of the bundle is missing"):
        described({"name": "orders"})


def test_addresses_that_a_manifest_does_not_take_are_left_out() -> None:
    urls = {"Source": "git@github.com:acme/orders.git", "Homepage": "acme.example", "Docs": "https://[d.example"}
    metadata = {**METADATA, "urls": urls, "authors": [{"name": "Ada", "email": "ada@localhost"}]}
    project, description = described(metadata, title=" ")
    manifest = manifest_for(project, description, [], has_prompts=False)
    assert manifest["author"] == {"name": "Ada"}
    assert manifest["display_name"] == "Order Desk"
    assert manifest.keys() & {"repository", "homepage", "documentation"} == set()


def test_a_bundle_without_a_pyproject_gets_one() -> None:
    project, description = described({"dependencies": ['a; python_version < "3.13"']}, author="Ada")
    text = pyproject_for(dataclasses.replace(project, pyproject=""), description)
    assert text.splitlines() == [
        "[project]",
        'name = "order-desk"',
        'version = "3.0"',
        'requires-python = ">=3.11"',
        "dependencies = [",
        '    "a; python_version < \\"3.13\\""',
        "]",
    ]
