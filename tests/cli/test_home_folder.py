"""A user without a home folder, as in a container, gets one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from funcmcp_cli.failure import Failure
from funcmcp_cli.home_folder import home_folder


def test_the_home_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert home_folder() == tmp_path


def test_a_user_without_a_home_folder_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", home)
    with pytest.raises(Failure, match="Set the environment variable HOME"):
        home_folder()
