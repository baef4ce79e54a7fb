"""The manifest of a bundle and server.json: what a project says is in them, in the form of their schemas."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from funcmcp import MCPServer, ServerInfo
from funcmcp_cli.bundle.documents import Description, describe, manifest_for, pyproject_for, registry_entry
from funcmcp_cli.bundle.project import BundleOptions, Project, Setting
from funcmcp_cli.failure import Failure
from tests.cli.bundle.published import check_registry_entry

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
    },
    "scripts": {"orders_mcp": "server:mcp.run"},
}


def described(metadata: dict[str, Any], **options: Any) -> tuple[Project, Description]:
    project = Project(Path("/project"), metadata, BundleOptions(**options))
    return project, describe(project, SERVER, INFO, "3.0")


def entry_for(metadata: dict[str, Any], **options: Any) -> dict[str, Any] | None:
    project, description = described(metadata, **options)
    return registry_entry(project, description, "0" * 64, title=description.title)


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
        "description": METADATA["description"],
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


def test_an_entry_has_a_package_of_pypi_the_bundle_and_the_endpoint() -> None:
    entry = entry_for(
        METADATA,
        registry_name="com.acme/orders",
        download_url="https://github.com/acme/orders/releases/download/v{version}/orders.mcpb",
        remote_url="https://orders.example.com/mcp",
        settings=(KEY, FOLDER, Setting("N", type="number", default=2), Setting("M", choices=("a", "b"))),
    )
    assert entry is not None
    assert (entry["name"], entry["version"]) == ("com.acme/orders", "1.2")
    assert len(entry["description"]) <= 100
    assert entry["repository"] == {"url": "https://github.com/acme/orders", "source": "github"}
    pypi, bundle = entry["packages"]
    assert (pypi["registryType"], pypi["identifier"], pypi["version"]) == ("pypi", "orders_mcp", "1.2")
    assert bundle["identifier"] == "https://github.com/acme/orders/releases/download/v1.2/orders.mcpb"
    assert bundle["fileSha256"] == "0" * 64
    key, folder, number, mode = pypi["environmentVariables"]
    assert (key["isSecret"], key["isRequired"], key["description"]) == (True, True, "The key of the API")
    assert folder["format"] == "filepath"
    assert "default" not in folder  # only the manifest of a bundle has ${HOME}
    assert (number["format"], number["default"], mode["choices"]) == ("number", "2", ["a", "b"])
    assert entry["remotes"] == [{"type": "streamable-http", "url": "https://orders.example.com/mcp"}]
    check_registry_entry(entry)


def test_a_repository_on_github_gives_the_name() -> None:
    entry = entry_for(METADATA)
    assert entry is not None
    assert entry["name"] == "io.github.acme/orders_mcp"
    assert entry_for({**METADATA, "urls": {"Homepage": "https://github.com/acme/orders"}}) == {
        **entry,
        "websiteUrl": "https://github.com/acme/orders",
    }
    check_registry_entry(entry)


def test_there_is_no_entry_without_a_name_or_a_place() -> None:
    assert entry_for({**METADATA, "urls": {}}) is None
    assert entry_for({**METADATA, "scripts": {}}) is None
    assert entry_for({**METADATA, "urls": {"Source": "https://gitlab.com/a/b"}}) is None
    with pytest.raises(Failure, match="'orders' is not a valid registry name"):
        entry_for(METADATA, registry_name="orders")


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
