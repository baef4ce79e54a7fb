from __future__ import annotations

import inspect
import os
from dataclasses import fields
from typing import Any

import pytest
import typer

from funcmcp._objects.definitions import options_by_name
from funcmcp_cli.failure import Failure
from funcmcp_cli.server_options import (
    Conflict,
    HostOptions,
    RunOptions,
    WorkerOptions,
    check_conflict,
    check_variables,
    option,
    set_variables,
    with_options,
)

CHOSEN: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 0,
    "uds": "mcp.sock",
    "reload": True,
    "workers": 1,
    "allowed_host": ["shop.example"],
    "page": True,
    "health": False,
    "log_level": "info",
    "log_format": "json",
    "verbose": True,
    "tls_cert": "cert.pem",
    "tls_key": "key.pem",
    "client_ca": "",
    "keep_alive": 0,
    "root_path": "/shop",
    "proxies": 0,
    "drain": 0,
    "queue": ["reports"],
    "no_tasks": True,
    "stdio": True,
    "sign_in_as": "ada",
    "config": "mcp.json",
    "header": ["X-Key: secret"],
    "bearer": "token",
    "sign_in": True,
}
"""A value of each option of ``funcmcp run``."""


def test_each_option_of_run_is_in_these_tests() -> None:
    assert list(CHOSEN) == [option.name for option in fields(RunOptions)]


def excluded(conflict: Conflict, options: RunOptions) -> str:
    """Return the options that `check_conflict` names."""
    with pytest.raises(typer.BadParameter) as raised:
        check_conflict(options, conflict)
    why, names = raised.value.message.split(": leave out ")
    assert why == conflict.value
    return names.removesuffix(".")


_ON_STDIO = {"log_format", "drain", "stdio", "config", "header", "bearer", "sign_in"}


@pytest.mark.parametrize("name", [name for name in CHOSEN if name not in _ON_STDIO])
def test_stdio_excludes_each_option_of_http_and_of_several_processes(name: str) -> None:
    flag = "--no-health" if name == "health" else f"--{name.replace('_', '-')}"
    assert excluded(Conflict.STDIO, RunOptions(**{name: CHOSEN[name]}, stdio=True)) == flag


def test_stdio_goes_with_the_options_that_are_not_of_http() -> None:
    check_conflict(RunOptions(**{name: CHOSEN[name] for name in _ON_STDIO}), Conflict.STDIO)


def test_a_reason_of_the_caller_is_in_the_error() -> None:
    with pytest.raises(typer.BadParameter, match=r"^it is elsewhere: leave out --reload\.$"):
        check_conflict(RunOptions(reload=True), Conflict.ELSEWHERE, "it is elsewhere")


def test_an_error_names_all_options_that_are_excluded_in_the_order_of_the_help() -> None:
    assert excluded(Conflict.UDS, RunOptions(**CHOSEN)) == (
        "--host and --port and --tls-cert and --tls-key and --client-ca and --sign-in-as"
    )
    assert excluded(Conflict.NO_TASKS, RunOptions(**CHOSEN)) == "--queue"
    assert excluded(Conflict.ELSEWHERE, RunOptions(**CHOSEN)) == (
        "--reload and --queue and --no-tasks and --sign-in-as"
    )
    assert excluded(Conflict.NO_URL, RunOptions(**CHOSEN)) == "--header and --sign-in"


def test_a_switch_that_is_off_is_named_as_it_was_written() -> None:
    assert excluded(Conflict.STDIO, RunOptions(page=False, health=True)) == "--no-page and --health"


def test_chosen_options_set_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"FUNCMCP_ROOT_PATH": "/before"}
    monkeypatch.setattr(os, "environ", environment)
    set_variables(RunOptions(page=True, health=False, keep_alive=0, proxies=2, drain=3, log_format="text", port=1))
    set_variables(WorkerOptions(queue=["reports", "mail"]))
    assert environment == {
        "FUNCMCP_ROOT_PATH": "/before",
        "FUNCMCP_PAGE": "on",
        "FUNCMCP_HEALTH": "off",
        "FUNCMCP_KEEP_ALIVE_SECONDS": "0",
        "FUNCMCP_PROXIES": "2",
        "FUNCMCP_DRAIN_SECONDS": "3",
        "FUNCMCP_LOG_FORMAT": "text",
        "FUNCMCP_TASK_QUEUES": "reports,mail",
    }


@pytest.mark.parametrize("options", [RunOptions(), HostOptions(), WorkerOptions()])
@pytest.mark.parametrize("variable", ["FUNCMCP_DRAIN_SECONDS", "FUNCMCP_LOG_FORMAT"])
def test_an_invalid_variable_is_a_failure_unless_its_option_is_chosen(
    options: RunOptions | HostOptions | WorkerOptions, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {variable: "x"})
    with pytest.raises(Failure, match=f"^{variable} must be "):
        set_variables(options)
    set_variables(type(options)(drain=1, log_format="json"))


def test_what_a_reader_of_a_variable_says_is_the_failure() -> None:
    def read() -> None:
        raise ValueError("FUNCMCP_X must be a number.")

    with pytest.raises(Failure, match=r"^FUNCMCP_X must be a number\.$"):
        check_variables(list, read)


@options_by_name
class Table:
    size: int = option(1, "--size", "-s", help="The size.")
    colour: str | None = option(None)
    bright: bool | None = option(None)


def test_a_command_gets_the_table_and_typer_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer(rich_markup_mode=None)
    calls = []

    @app.command()
    @with_options
    def paint(wall: str, *, options: Table) -> None:
        """Paint a wall."""
        calls.append((wall, options))

    assert list(inspect.signature(paint).parameters) == ["wall", "size", "colour", "bright"]
    for arguments in (["north"], ["south", "-s", "3", "--colour", "red", "--no-bright"], ["--help"]):
        app(arguments, standalone_mode=False)
    assert calls == [("north", Table()), ("south", Table(size=3, colour="red", bright=False))]
    assert "Paint a wall." in capsys.readouterr().out
