"""What is read of a project: pyproject.toml, the metadata of a script, requirements.txt, and the errors for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.bundle.project import Setting, project_of
from funcmcp_cli.failure import Failure
from funcmcp_cli.targets import find

if TYPE_CHECKING:
    from pathlib import Path

TABLE = "[project]\nname = 'orders'\nversion = '1.0'\n"


def project(folder: Path, text: str, name: str = "pyproject.toml") -> None:
    (folder / name).write_text(text)
    (folder / "server.py").touch()


def test_settings_are_read_with_their_types(tmp_path: Path) -> None:
    project(
        tmp_path,
        TABLE
        + "[tool.funcmcp.bundle]\ntitle = 'Orders'\nregistry-name = 'io.github.acme/orders'\nexclude = ['data/']\n"
        + "[tool.funcmcp.bundle.settings]\nKEY = { title = 'Key', secret = true, required = true }\n"
        + "LIMIT = { type = 'number', default = 1.5 }\nMODE = { choices = ['a', 'b'], default = 'a' }\n"
        + "QUIET = { type = 'boolean', default = false }\n",
    )
    options = project_of(find(str(tmp_path / "server.py"))).options
    assert (options.title, options.registry_name, options.exclude) == ("Orders", "io.github.acme/orders", ("data/",))
    assert options.settings == (
        Setting("KEY", "Key", secret=True, required=True),
        Setting("LIMIT", type="number", default=1.5),
        Setting("MODE", choices=("a", "b"), default="a"),
        Setting("QUIET", type="boolean", default=False),
    )
    assert options.settings[0].key == "key"


def test_the_project_is_that_of_the_nearest_folder_above(tmp_path: Path) -> None:
    project(tmp_path, TABLE)
    package = tmp_path / "src" / "orders"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "server.py").touch()
    found = project_of(find(str(package / "server.py")))
    assert (found.folder, found.metadata["name"], found.pyproject) == (tmp_path, "orders", None)


def test_a_script_has_its_metadata_in_itself(tmp_path: Path) -> None:
    project(tmp_path, TABLE)
    metadata = "requires-python = '>=3.12'\ndependencies = ['rich']\n\n[tool.funcmcp.bundle]\nauthor = 'Ada'"
    lines = [f"# {line}".rstrip() for line in ["/// script", *metadata.splitlines(), "///"]]
    (tmp_path / "server.py").write_text("\n".join(["'''A server.'''", *lines, "x = 1", ""]))
    found = project_of(find(str(tmp_path / "server.py")))
    assert found.metadata == {"requires-python": ">=3.12", "dependencies": ["rich"]}
    assert (found.script, found.options.author, found.pyproject) == (tmp_path / "server.py", "Ada", "")


@pytest.mark.parametrize("dependency", ["-r other.txt", "rich; touch x"], ids=["option", "command"])
def test_a_dependency_that_is_not_a_requirement_is_an_error(tmp_path: Path, dependency: str) -> None:
    message = f"{dependency!r} in dependencies is not a requirement"
    project(tmp_path, f"[project]\nname = 'orders'\ndependencies = ['{dependency}']\n")
    with pytest.raises(Failure, match=message):
        project_of(find(str(tmp_path / "server.py")))
    (tmp_path / "server.py").write_text(f"# /// script\n# dependencies = ['{dependency}']\n# ///\n")
    with pytest.raises(Failure, match=message):
        project_of(find(str(tmp_path / "server.py")))


def test_requirements_are_the_dependencies_where_no_table_has_them(tmp_path: Path) -> None:
    project(tmp_path, "# server\nrich>=14  # tables\n\nfuncmcp\n", "requirements.txt")
    assert project_of(find(str(tmp_path / "server.py"))).metadata == {"dependencies": ["rich>=14", "funcmcp"]}
    project(tmp_path, "[tool.funcmcp.bundle]\nauthor = 'Ada'\n")
    found = project_of(find(str(tmp_path / "server.py")))
    assert (found.options.author, found.metadata) == ("Ada", {"dependencies": ["rich>=14", "funcmcp"]})
    project(tmp_path, "-r other.txt\n", "requirements.txt")
    with pytest.raises(Failure, match=r"line 1 is not a requirement. Write the dependencies into \[project\]"):
        project_of(find(str(tmp_path / "server.py")))


def test_a_server_without_a_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    with pytest.raises(Failure, match=r"has no dependencies that a bundle can install\. Write a pyproject\.toml"):
        project_of(find(str(tmp_path / "server.py")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project\n", "is not valid TOML"),
        pytest.param(f"x = {'[' * 3000}{']' * 3000}\n", "is nested too deeply", id="deep"),
        ("[tool.funcmcp.bundle]\nsetings = {}\n", "unknown option 'setings' in .*. Did you mean settings"),
        ("[tool.funcmcp.bundle]\ntitle = 1\n", "title of .* must be a text"),
        ("[tool.funcmcp.bundle.settings]\n'a b' = {}\n", "'a b' .* is not the name of an environment variable"),
        ("[tool.funcmcp.bundle.settings]\nA = 1\n", "must be a table"),
        ("[tool.funcmcp.bundle.settings.A]\nsecrt = true\n", "unknown option 'secrt' .* Did you mean secret"),
        ("[tool.funcmcp.bundle.settings.A]\nsecret = 'yes'\n", "secret of .* must be true or false"),
        ("[tool.funcmcp.bundle.settings.A]\nchoices = 'a'\n", "choices of .* must be an array"),
        ("[tool.funcmcp.bundle.settings.A]\ntype = 'text'\n", "type of .* must be one of string, number"),
        ("[tool.funcmcp.bundle.settings.A]\ntype = 'number'\nsecret = true\n", "so its type must be string"),
        ("[tool.funcmcp.bundle.settings.A]\nsecret = true\ndefault = 'k'\n", "A.* is secret, so it has no default"),
        ("[tool.funcmcp.bundle.settings.A]\ndefault = 1\n", "default of .* must be a text"),
        ("[tool.funcmcp.bundle.settings.A]\ntype = 'number'\ndefault = true\n", "default of .* must be a number"),
        ("[tool.funcmcp.bundle.settings.A]\ntype = 'number'\ndefault = nan\n", "default of .* must be a number"),
        ("[tool.funcmcp.bundle.settings.A]\nchoices = ['x']\ndefault = 'y'\n", "must be one of its choices: x"),
        ("[tool.funcmcp.bundle.settings]\nKEY = {}\nkey = {}\n", "KEY and key in .* settings differ only in case"),
    ],
)
def test_a_wrong_table_is_an_error_that_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    project(tmp_path, text + TABLE if text.startswith("[project") else TABLE + text)
    with pytest.raises(Failure, match=message):
        project_of(find(str(tmp_path / "server.py")))


@pytest.mark.parametrize(("versions", "message"), [(">=3.10", "allows versions below 3.11"), ("3.x", "is not valid")])
def test_versions_of_python_that_funcmcp_does_not_have_are_refused(tmp_path: Path, versions: str, message: str) -> None:
    project(tmp_path, f"{TABLE}requires-python = '{versions}'\n")
    with pytest.raises(Failure, match=f"requires-python {message}"):
        project_of(find(str(tmp_path / "server.py")))


def test_a_file_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    (tmp_path / "pyproject.toml").write_bytes(b"\xff")
    with pytest.raises(Failure, match=r"pyproject\.toml can't be read: it is not UTF-8"):
        project_of(find(str(tmp_path / "server.py")))


@pytest.mark.parametrize("end", ["", "x = 1\n# ///\n"])
def test_metadata_of_a_script_without_an_end_is_an_error(tmp_path: Path, end: str) -> None:
    (tmp_path / "server.py").write_text(f"# /// script\n# dependencies = []\n{end}")
    with pytest.raises(Failure, match="the metadata of the script has no end"):
        project_of(find(str(tmp_path / "server.py")))
