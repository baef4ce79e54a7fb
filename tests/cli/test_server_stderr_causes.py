"""The cause of a failure is one line with the author's file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from funcmcp_cli import server_stderr
from funcmcp_cli.server_stderr import cause_of, place_in

TRACEBACK = """Starting
Traceback (most recent call last):
  File "{folder}/server.py", line 8, in <module>
    boom()
  File "{folder}/.venv/lib/python3.11/site-packages/lib/x.py", line 2, in boom
    raise ValueError("no database")
ValueError: no database
"""
SYNTAX = """  File "/srv/app.py", line 3
    def f(:
          ^
SyntaxError: invalid syntax
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", ""),
        (" \n", ""),
        ("one\ntwo: it failed\n\n", "two: it failed"),
        (TRACEBACK.format(folder="/srv"), "/srv/server.py, line 8: ValueError: no database"),
        (TRACEBACK.format(folder=Path.cwd()), "server.py, line 8: ValueError: no database"),
        (TRACEBACK.format(folder="/srv/funcmcp"), "/srv/funcmcp/server.py, line 8: ValueError: no database"),
        (SYNTAX, "/srv/app.py, line 3: SyntaxError: invalid syntax"),
    ],
)
def test_the_cause_is_the_last_line_with_the_author_s_place(text: str, cause: str) -> None:
    assert cause_of(text) == cause


def test_the_library_s_own_files_are_not_the_author_s() -> None:
    folder = Path(server_stderr.__file__).parent
    text = TRACEBACK.format(folder="/srv").replace("/srv/.venv/lib/python3.11/site-packages/lib", str(folder))
    assert str(folder) in text
    assert place_in(text) == "/srv/server.py, line 8"


def test_only_the_last_traceback_counts() -> None:
    text = TRACEBACK.format(folder="/old") + TRACEBACK.format(folder="/new")
    assert place_in(text) == "/new/server.py, line 8"
