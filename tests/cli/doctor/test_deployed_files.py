"""Files that an app imports, and that .funcignore excludes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.doctor.deployed_files import check_deployed_files, imported_files
from funcmcp_cli.doctor.project import read_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in {"host.json": '{"version": "2.0"}', **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def excluded(folder: Path, ignored: str, files: Mapping[str, str]) -> list[str]:
    """Return what .funcignore excludes, by doctor."""
    write(folder, {**files, ".funcignore": ignored})
    return [finding.text.partition(", which")[0] for finding in check_deployed_files(read_files(folder))]


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("import shop, os\n", ["shop.py"]),
        ("def f():\n    from shop import order\n", ["shop.py"]),
        ("import tools.text.words as w\n", ["tools/__init__.py", "tools/text/words.py"]),
        ("from tools import text, other\n", ["tools/__init__.py", "tools/other.py"]),
        ("from tools.text import words\n", ["tools/__init__.py", "tools/text/words.py"]),
        ("from .shop import x\n", ["shop.py"]),
        ("from . import shop\n", ["shop.py"]),
        ("from ..shop import x\n", ["shop.py"]),
        ("import deep.first\n", ["deep/first.py", "deep/second.py", "shop.py"]),
        ("import circle\n", ["circle.py"]),
        ("import broken, absent\n", ["broken.py"]),
        ("import (\n", []),
    ],
)
def test_imports_are_followed_in_the_text(code: str, files: list[str], tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "function_app.py": code,
            "shop.py": "",
            "tools/__init__.py": "",
            "tools/other.py": "",
            "tools/text/words.py": "",
            "deep/first.py": "from .second import x\nfrom . import absent",
            "deep/second.py": "import shop",
            "circle.py": "import function_app, circle",
            "broken.py": "def",
            "unused.py": "",
        },
    )
    assert imported_files(tmp_path, "function_app.py") == sorted(["function_app.py", *files])


def test_a_line_that_excludes_an_imported_file_is_named(tmp_path: Path) -> None:
    files = {"function_app.py": "def f():\n    import lazy.part\n", "lazy/part.py": "", "requirements.txt": "x"}
    assert excluded(tmp_path, "tests\n*.md\n", files) == []
    assert excluded(tmp_path, "lazy/\n", files) == ["excludes lazy/part.py"]
    assert excluded(tmp_path, "*.txt\n!lazy\n*.json\n", files) == ["excludes host.json", "excludes requirements.txt"]
    many = {**files, "function_app.py": "".join(f"import m{number}\n" for number in range(7))}
    many |= {f"m{number}.py": "" for number in range(7)}
    assert excluded(tmp_path, "m*.py", many) == ["excludes m0.py, m1.py, m2.py, m3.py, m4.py and 2 more"]


def test_the_file_of_a_setting_is_the_code(tmp_path: Path) -> None:
    settings = json.dumps({"Values": {"PYTHON_SCRIPT_FILE_NAME": "main.py"}})
    files = {"main.py": "import shop", "shop.py": "", "local.settings.json": settings}
    assert excluded(tmp_path, "shop.py", files) == ["excludes shop.py"]


@pytest.mark.parametrize(
    ("main", "files"),
    [
        ("dist/index.js", ["dist/index.js", "dist/lib/text.js"]),
        ("./dist/index.js", ["dist/index.js", "dist/lib/text.js"]),
        ("dist/functions/*.js", ["dist/functions/a.js", "dist/functions/b.js"]),
        ("dist/{index,functions/a}.js", ["dist/index.js", "dist/functions/a.js", "dist/lib/text.js"]),
        ("src/index.mjs", ["src/index.mjs", "src/more/index.js"]),
        ("../outside.js", []),
        ("/etc/passwd", []),
        ("dist/none.js", []),
        ("dist/**/**/functions/*.js", ["dist/functions/a.js", "dist/functions/b.js"]),
        ("dist/**functions", []),
        ("{a,b}" * 40, []),
        ("\0", []),
    ],
)
def test_the_files_of_a_node_app(main: str, files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "app"
    app = {
        "package.json": json.dumps({"main": main}),
        "dist/index.js": 'const text = require("./lib/text");\nrequire("../../outside");\nrequire("@azure/functions");',
        "dist/lib/text.js": 'import x from "../index.js";',
        "dist/functions/a.js": "",
        "dist/functions/b.js": 'import "./absent.js";',
        "src/index.mjs": 'import { a } from "./more";\nconst later = await import("./more/index.js");',
        "src/more/index.js": "",
    }
    write(tmp_path, {"outside.js": ""})
    shown = excluded(folder, "dist\nsrc", app)
    assert sorted(", ".join(text.removeprefix("excludes ") for text in shown).split(", ")) == (sorted(files) or [""])


@pytest.mark.parametrize("manifest", ["", "{", "[]", '{"main": 5}'])
def test_a_package_that_can_not_be_read_names_no_files(manifest: str, tmp_path: Path) -> None:
    assert excluded(tmp_path, "a.js", {"package.json": manifest, "a.js": ""}) == []
    (tmp_path / "package.json").unlink()
    assert excluded(tmp_path, "a.js", {"a.js": ""}) == []


def test_code_that_is_not_a_text_imports_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"package.json": '{"main": "a.js"}'})
    (tmp_path / "a.js").write_bytes(b"\xff")
    assert excluded(tmp_path, "a.js", {}) == ["excludes a.js"]
    (tmp_path / "function_app.py").write_bytes(b"\xff")
    assert imported_files(tmp_path, "function_app.py") == ["function_app.py"]
