"""Ignore files are read as git reads them."""

from __future__ import annotations

import pytest

from funcmcp_cli.doctor.ignore_file import excluding_line


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("", "server.py", None),
        ("# server.py\n\n", "server.py", None),
        ("server.py", "server.py", "server.py"),
        ("server.py", "shop/server.py", "server.py"),
        ("/server.py", "shop/server.py", None),
        ("shop/server.py", "a/shop/server.py", None),
        ("*.py", "shop/server.py", "*.py"),
        ("*.py\n!server.py", "server.py", None),
        ("*.py\n!server.py\nserver.*", "server.py", "server.*"),
        ("shop\n!shop/server.py", "shop/server.py", "shop"),
        ("shop/*\n!shop/server.py", "shop/server.py", None),
        ("server.py/", "server.py", None),
        ("shop/", "a/shop/b/server.py", "shop/"),
        ("s?rver.py", "server.py", "s?rver.py"),
        ("shop?server.py", "shop/server.py", None),
        ("shop/*.py", "shop/a/server.py", None),
        ("shop/**/server.py", "shop/server.py", "shop/**/server.py"),
        ("shop/**/server.py", "shop/a/b/server.py", "shop/**/server.py"),
        ("**/server.py", "a/server.py", "**/server.py"),
        ("shop/**/**/server.py", "shop/a/server.py", "shop/**/**/server.py"),
        ("shop/**", "shop/a/server.py", "shop/**"),
        ("shop/**", "shop", None),
        ("[p-s]erver.py", "server.py", "[p-s]erver.py"),
        ("[!a-r]erver.py", "server.py", "[!a-r]erver.py"),
        ("[z-a]erver.py", "server.py", None),
        ("\\#server.py", "#server.py", "\\#server.py"),
        ("serverxpy", "server.py", None),
        ("server.py  ", "server.py", "server.py"),
    ],
)
def test_a_file_is_excluded_by_the_line_that_git_names(text: str, path: str, line: str | None) -> None:
    assert excluding_line(text, path) == line


def test_a_pattern_of_many_stars_is_read() -> None:
    line = "**/" * 5000 + "server.py"
    assert excluding_line(line, "a/b/server.py") == line
    assert excluding_line(line, "a/b/client.py") is None
