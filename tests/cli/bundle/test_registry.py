"""server.json: an entry has the form of its schema, and what the official registry refuses is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from funcmcp import MCPServer, ServerInfo
from funcmcp_cli.bundle.documents import describe
from funcmcp_cli.bundle.project import BundleOptions, Project, Setting
from funcmcp_cli.bundle.registry import official_problems, registry_entry, set_digest
from funcmcp_cli.failure import Failure
from tests.cli.bundle.published import check_registry_entry

KEY = Setting("ORDERS_KEY", "Key", "The key of the API", secret=True, required=True)
FOLDER = Setting("ORDERS_FOLDER", type="directory", default="${HOME}/orders")
METADATA: dict[str, Any] = {
    "name": "Orders_MCP",
    "version": "1.2",
    "description": "Look up orders. " * 10,
    "readme": {"text": "<!-- mcp-name: io.github.acme/orders_mcp-->"},
    "authors": [{"name": "Ada"}],
    "urls": {"Source": "https://github.com/acme/orders", "Homepage": "https://acme.example"},
    "scripts": {"orders_mcp": "server:mcp.run"},
}
RELEASE = "https://github.com/acme/orders/releases/download/v{version}/orders.mcpb"
REMOTE = "https://orders.example.com/mcp"


def entry_for(metadata: dict[str, Any], **options: Any) -> tuple[dict[str, Any] | None, Project]:
    project = Project(Path("/project"), metadata, BundleOptions(**options))
    return registry_entry(project, describe(project, MCPServer("Order Desk"), ServerInfo(), "3.0")), project


def valid_entry(metadata: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return an entry that has been checked against its schema."""
    entry, _ = entry_for(metadata, **options)
    assert entry is not None
    set_digest(entry, "0" * 64)
    check_registry_entry(entry)
    return entry


def problems(metadata: dict[str, Any], **options: Any) -> list[str]:
    entry, project = entry_for(metadata, **options)
    assert entry is not None
    return official_problems(entry, project)


def test_an_entry_has_a_package_of_pypi_the_bundle_and_the_endpoint() -> None:
    settings = (KEY, FOLDER, Setting("N", type="number", default=2), Setting("M", choices=("a", "b")))
    entry = valid_entry(
        METADATA, registry_name="com.acme/orders", download_url=RELEASE, remote_url=REMOTE, settings=settings
    )
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
    assert entry["remotes"] == [{"type": "streamable-http", "url": REMOTE}]


def test_a_repository_on_github_gives_the_name() -> None:
    entry = valid_entry(METADATA)
    assert entry["name"] == "io.github.acme/orders_mcp"
    homepage = "https://github.com/acme/orders"
    assert valid_entry({**METADATA, "urls": {"Homepage": homepage}}) == {**entry, "websiteUrl": homepage}
    assert valid_entry({**METADATA, "scripts": {"Orders_MCP": ""}})["packages"][0]["identifier"] == "Orders_MCP"


def test_there_is_no_entry_without_a_name_or_a_place() -> None:
    for metadata in (
        {**METADATA, "urls": {}},
        {**METADATA, "scripts": {}},
        {**METADATA, "urls": {"Source": "https://gitlab.com/a/b"}},
        {**METADATA, "name": "a", "scripts": {"a": ""}},
    ):
        assert entry_for(metadata)[0] is None, metadata


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("http://www.github.com/acme/orders.git", "https://github.com/acme/orders"),
        ("https://github.com/acme/shop/tree/main/orders?tab=readme#top", "https://github.com/acme/shop"),
        ("https://gitlab.com/acme/shop/orders/-/tree/main", "https://gitlab.com/acme/shop/orders"),
        ("https://github.com/acme", None),
        ("https://git.acme.example/orders", None),
    ],
)
def test_the_repository_is_the_url_of_its_page(source: str, expected: str | None) -> None:
    entry = valid_entry({**METADATA, "urls": {"Source": source}}, registry_name="com.acme/orders")
    assert entry.get("repository", {}).get("url") == expected


def test_texts_fit_into_a_registry() -> None:
    for text, expected in (
        ("  Look up\n orders ", "Look up orders"),
        ("word " * 30, "word " * 18 + "word..."),
        ("\u6ce8" * 150, "\u6ce8" * 97 + "..."),
        (" ", "Order Desk"),
    ):
        entry = valid_entry({**METADATA, "description": text}, title=text)
        assert (entry["title"], entry["description"]) == (expected, expected), text
    assert "websiteUrl" not in valid_entry(
        {**METADATA, "urls": {**METADATA["urls"], "Homepage": "http://acme.example"}}
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"registry_name": "orders"}, "'orders' is not a valid registry name"),
        ({"registry_name": "com.acme/shop/orders"}, "is not a valid registry name"),
        ({"registry_name": ".acme/orders"}, "is not a valid registry name"),
        ({"registry_name": "com.acme/orders_"}, "is not a valid registry name"),
        ({"registry_name": f"com.acme/{'o' * 200}"}, "is not a valid registry name"),
        ({"download_url": "orders.mcpb"}, "download-url 'orders.mcpb' is not a URL"),
        ({"download_url": "https://github.com/acme/{name}.mcpb"}, "is not a URL"),
        ({"remote_url": "https://{tenant}.example.com/mcp"}, "remote-url .* is not a URL"),
        ({"remote_url": "https://orders.example.com/a b"}, "remote-url .* is not a URL"),
    ],
)
def test_what_is_not_in_the_form_of_an_entry_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Failure, match=message):
        entry_for(METADATA, **options)


def test_versions_that_stand_for_several_are_refused() -> None:
    for version in ("latest", "^1.2", "~1.2", ">=1.2.0", "1.x", "1.2.*", "1.0 - 2.0", "1.2 || 1.3", "1" * 256):
        with pytest.raises(Failure, match="A registry does not accept the version"):
            entry_for({**METADATA, "version": version})
    for version in ("1.2.0", "2.0rc1", "1.0.0-beta.1", "2026-11-30", "1!2.0+local"):
        assert valid_entry({**METADATA, "version": version})["version"] == version


def test_an_entry_that_the_official_registry_takes_has_no_problems() -> None:
    assert problems(METADATA, download_url=RELEASE, remote_url=REMOTE) == []
    gitlab = "https://gitlab.com/acme/shop/orders/-/releases/v{version}/downloads/orders.mcpb"
    assert problems(METADATA, download_url=gitlab, remote_url="https://8.8.8.8/mcp") == []


@pytest.mark.parametrize(
    "url",
    [
        "http://orders.example.com/mcp", "https://localhost/mcp", "https://a.localhost./mcp", "https://127.0.0.1/mcp",
        "https://10.1.2.3/mcp", "https://169.254.1.1/mcp", "https://[::1]/mcp", "https://[::ffff:10.0.0.1]/mcp",
        "https://100.64.0.1/mcp", "https://0.0.0.0/mcp",
    ],
)  # fmt: skip
def test_an_endpoint_that_is_not_public_is_named(url: str) -> None:
    assert problems(METADATA, remote_url=url) == [f"{url} is not a public URL with https. Correct remote-url."]


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/orders.mcpb",
        "http://github.com/acme/orders/releases/download/v1/orders.mcpb",
        "https://github.com/acme/orders/raw/main/orders.mcpb",
        "https://github.com/acme/orders/releases/download/v1/orders.zip",
        "https://gitlab.com/acme/orders/-/raw/main/orders.mcpb",
    ],
)
def test_a_bundle_that_is_not_in_a_release_is_named(url: str) -> None:
    (problem,) = problems(METADATA, download_url=url)
    assert problem.startswith(f"{url} is not a bundle in a release on GitHub or GitLab.")


def test_the_readme_on_pypi_names_the_server(tmp_path: Path) -> None:
    marker = "mcp-name: io.github.acme/orders_mcp"
    (tmp_path / "READ.md").write_text(f"{marker}-pro\n{marker}")
    for readme in ("READ.md", {"file": "READ.md"}, {"text": f"{marker}\n"}, {"text": f"<!--{marker}--!>"}):
        project = Project(tmp_path, {**METADATA, "readme": readme}, BundleOptions())
        assert official_problems(valid_entry(METADATA), project) == [], readme
    lacks = [f"The README of the package lacks this line: <!-- {marker} -->"]
    for readme in ("other.md", {"text": f"{marker}-pro"}, {"text": f"{marker}."}, {"text": marker.upper()}):
        assert problems({**METADATA, "readme": readme}) == lacks, readme
    without = {name: value for name, value in METADATA.items() if name != "readme"}
    (problem,) = problems(without)
    assert problem.startswith("The package has no README on PyPI.")
    assert problems({**without, "dynamic": ["readme"]}) == lacks


def test_a_dynamic_version_may_be_another_one() -> None:
    metadata = {name: value for name, value in METADATA.items() if name != "version"} | {"dynamic": ["version"]}
    (problem,) = problems(metadata)
    assert problem.startswith("PyPI must have version 3.0 of the package")
    assert problems(metadata, version="1.2") == []
