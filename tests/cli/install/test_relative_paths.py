"""Relative paths of a server, which lead to other files where a client starts it, are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp_cli.install.relative_paths import notes_about_arguments, relative_paths_in
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CODE = """
import gzip, json, sqlite3, zipfile
from pathlib import Path
import pandas as pd
import data
from funcmcp import MCPServer

mcp = MCPServer("Sales")
DATA = "data/sales.csv"
HERE = Path(__file__).parent

def load():
    open("one.json")
    json.load(open(DATA))
    pd.read_csv("three.csv", sep=";")
    gzip.open("four.gz")
    sqlite3.connect("five.db")
    Path("six").read_text()
    open(HERE / "a"); open("/etc/hosts"); pd.read_csv("https://example.com/a.csv"); sqlite3.connect(":memory:")
    (HERE / Path("b")).read_text(); Path("~/c").expanduser(); zipfile.ZipFile(HERE / "d").open("e"); open(x); open()
    json.loads("f"); pd.read_sql("select 1")

if __name__ == "__main__":
    open("seven")
"""


def test_relative_paths_that_are_texts_are_found() -> None:
    texts = ["one.json", "data/sales.csv", "three.csv", "four.gz", "five.db", "six"]
    assert [path.text for path in relative_paths_in(CODE)] == texts
    assert [path.line for path in relative_paths_in(CODE)] == list(range(13, 19))
    assert not list(relative_paths_in(f"import os\nos.chdir('/srv')\n{CODE}"))
    assert not list(relative_paths_in("def ("))


def test_arguments_and_variables_of_this_folder_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.toml").touch()
    (tmp_path / "today").touch()
    arguments = ("--config=shop.toml", "--mode", "today", "none.toml", str(tmp_path / "shop.toml"), "x." + 300 * "x")
    end = f"is a path of this folder, and clients start the server in another one. Write {tmp_path / 'shop.toml'}"
    assert notes_about_arguments(arguments, {"SHOP": "./shop.toml", "MENU": "today", "KEY": "a\0./b"}) == [
        f"The argument shop.toml {end}",
        f"The environment variable SHOP ./shop.toml {end}",
    ]


def test_install_names_relative_paths_of_the_server_and_of_its_modules(tmp_path: Path) -> None:
    (tmp_path / "data.py").write_text('rows = [open("a").read]\n'.replace("[open", "[lambda: open"))
    code = "import data\nfrom funcmcp import MCPServer\nmcp = MCPServer('a')\n@mcp.tool\ndef read() -> str:\n"
    (tmp_path / "server.py").write_text(f"{code}    return open('b').read() + open('c').read()\n")
    shown = funcmcp("install", "cursor", "server.py", folder=tmp_path)
    end = "is a relative path, and clients start the server in another folder. Write Path(__file__).parent /"
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr.splitlines()[-2:] == [
        f"data.py, line 1: 'a' {end} 'a'.",
        f"server.py, line 6: 'b' {end} 'b'.",
    ]
