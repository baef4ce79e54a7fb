"""``funcmcp front``: an app on Azure for clients of this machine, and of others with credentials of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP
from tests.upstreams.azure_front_end import KEY, OTHER_KEY, AzureFrontEnd, azure_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("azure.functions")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureFrontEnd]:
    with azure_app(tmp_path_factory.mktemp("orders")) as app:
        yield app


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("place", ["option", "variable", "file", "url"])
def test_the_key_is_used_for_callers_of_this_machine_and_never_written(
    app: AzureFrontEnd, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    options = {"option": ["--key", KEY], "file": ["--key-file", str(file)]}.get(place, [])
    url = f"{app.origin}/?code={KEY}" if place == "url" else app.origin
    env = {"FUNCMCP_APP_KEY": KEY} if place == "variable" else {}
    command = [*FUNCMCP, "front", url, *options, "--port", "0", "--log-level", "debug"]
    with running(command, env=env) as process:
        called = funcmcp("call", process.endpoint(), "forecast", f"city={place}")
        assert called.stdout == f"sunny in {place}, asked 1 times\n"
    assert KEY not in "\n".join(process.lines)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_client_of_stdio_is_served(app: AzureFrontEnd) -> None:
    front = f"{' '.join(FUNCMCP)} front {app.origin} --stdio"
    called = funcmcp("call", front, "forecast", "city=Oslo", env={"FUNCMCP_APP_KEY": KEY})
    assert called.stdout == "sunny in Oslo, asked 1 times\n", called.stderr


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_callers_of_other_machines_send_their_own_credentials(app: AzureFrontEnd, workers: str) -> None:
    command = [*FUNCMCP, "front", app.origin, "--host", "0.0.0.0", "--port", "0", "--workers", workers]
    with running(command) as process:
        url = process.endpoint()
        called = funcmcp("call", url, "forecast", f"city=Bonn{workers}", "--header", f"x-functions-key:{KEY}")
        assert called.stdout == f"sunny in Bonn{workers}, asked 1 times\n", called.stderr
        refused = funcmcp("call", url, "forecast", "city=Bonn")
        assert "requires credentials (401)" in refused.stderr


@pytest.mark.parametrize("place", ["option", "url"])
@pytest.mark.parametrize(
    "options", [["--host", "0.0.0.0"], ["--allowed-host", "a.example"], ["--proxies", "1"], ["--root-path", "/a"]]
)
def test_a_key_is_not_used_for_callers_of_other_machines(place: str, options: list[str]) -> None:
    url = f"https://a.example?code={KEY}" if place == "url" else "https://a.example"
    key = ["--key", KEY] if place == "option" else []
    shown = funcmcp("front", url, *key, *options)
    assert shown.returncode == 2
    assert "Everyone who reaches the front would use the app with its key. Leave out the key" in _words(shown.stderr)
    assert KEY not in shown.stderr


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_key_that_the_app_refuses_is_one_sentence(app: AzureFrontEnd) -> None:
    shown = funcmcp("front", app.origin, "--key", OTHER_KEY, "--port", "0")
    assert shown.returncode == 1
    assert "does not accept the credentials of this server." in shown.stderr
    assert "Traceback" not in shown.stderr
    assert OTHER_KEY not in shown.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["https://a.example", "--key", KEY, "--key-file", "key"], 2, "can't be combined: leave out one of them."),
        (["https://a.example", "--key-file", "missing"], 1, "missing cannot be read: No such file or directory."),
        (["https://a.example", "--key-file", "empty"], 1, "empty is empty. Write the key into it."),
        (["http://a.example", "--key", KEY], 1, "must begin with https:// (http:// only for a loopback address)"),
        (["http://a.example"], 1, "must begin with https:// (http:// only for a loopback address)"),
        (["https://a.example", "--reload"], 2, "No such option"),
        ([], 2, "Missing argument"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: list[str], code: int, sentence: str) -> None:
    (tmp_path / "empty").write_text("\n")
    shown = funcmcp("front", *arguments, folder=tmp_path)
    assert shown.returncode == code
    assert sentence in _words(shown.stderr)
    assert KEY not in shown.stderr


def _words(text: str) -> str:
    """Return a text without the frame that a terminal draws around a message."""
    return " ".join(text.replace("│", "").split())
