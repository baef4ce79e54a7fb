"""The folders of function apps in a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp_host.app_folders import app_in, apps_below, deployed_apps
from funcmcp_host.folder import FolderError

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, *names: str, services: tuple[str, ...] = ()) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    if services:
        lines = [f"  s{number}:\n    project: {service}\n" for number, service in enumerate(services)]
        (folder / "azure.yaml").write_text("services:\n" + "".join(lines))
    return folder


def test_a_folder_with_host_json_is_an_app(tmp_path: Path) -> None:
    write(tmp_path, "host.json", "src/host.json", services=("src",))
    assert app_in(tmp_path) == tmp_path
    assert deployed_apps(tmp_path) == []


def test_the_one_app_that_azure_yaml_deploys_is_meant(tmp_path: Path) -> None:
    write(tmp_path, "src/host.json", "other/host.json", services=('"./src"', "web"))
    assert app_in(tmp_path) == tmp_path / "src"


@pytest.mark.parametrize(
    ("names", "services", "text"),
    [
        (("a/host.json", "b/host.json"), ("a", "b"), r"Its function apps are in a, b\. Name the folder of the app\."),
        (("a/host.json",), (), r"Its function app is in a\. Name the folder of the app\."),
        (
            ("x/a/host.json", "x/b/host.json", ".git/host.json", "x/a/bin/host.json", "node_modules/c/host.json"),
            (),
            r"Its function apps are in x/a, x/b\.",
        ),
    ],
)
def test_several_apps_are_named(names: tuple[str, ...], services: tuple[str, ...], text: str, tmp_path: Path) -> None:
    write(tmp_path, *names, services=services)
    with pytest.raises(FolderError, match=text):
        app_in(tmp_path)


def test_a_folder_without_apps_is_left_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, "1/2/3/4/5/host.json", "readme.md")
    assert apps_below(tmp_path) == []
    assert app_in(tmp_path) == tmp_path
    (tmp_path / "azure.yaml").write_bytes(b"\xff\xfe")
    assert deployed_apps(tmp_path) == []


def test_a_path_in_azure_yaml_begins_in_the_folder(tmp_path: Path) -> None:
    elsewhere = write(tmp_path / "elsewhere", "host.json")
    folder = write(tmp_path / "repository", "src/host.json", "b/host.json", services=(str(elsewhere), "/src", "b"))
    assert deployed_apps(folder) == [folder / "src", folder / "b"]
    with pytest.raises(FolderError, match=r"Its function apps are in src, b\."):
        app_in(folder)
