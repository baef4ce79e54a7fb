"""What a server writes on stderr is held until it has answered."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from funcmcp_cli.server_stderr import ServerStderr

if TYPE_CHECKING:
    import pytest


def test_lines_are_passed_on_when_the_server_has_answered(capfd: pytest.CaptureFixture[str]) -> None:
    with ServerStderr(math.inf) as stderr:
        os.write(stderr.descriptor, b"held\n")
        assert capfd.readouterr().err == ""
        stderr.release()
        os.write(stderr.descriptor, b"and \x1b[31mlater\n")
    assert capfd.readouterr().err == "held\nand \\x1b[31mlater\n"


def test_the_cause_replaces_the_lines(capfd: pytest.CaptureFixture[str]) -> None:
    with ServerStderr(math.inf) as stderr:
        os.write(stderr.descriptor, b"Starting\nserver.py, line 1: no\n")
        assert stderr.cause() == "server.py, line 1: no"
    assert capfd.readouterr().err == ""


def test_a_long_start_shows_its_lines_and_has_no_cause(capfd: pytest.CaptureFixture[str]) -> None:
    with ServerStderr(0) as stderr:
        os.write(stderr.descriptor, b"Installing\n")
        assert stderr.cause() == ""
    assert capfd.readouterr().err == "Installing\n"
