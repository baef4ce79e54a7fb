"""Commands that sign in at a URL as a program: where the credential comes from, and where it never appears."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.cli.forking import funcmcp
from tests.client.authorizing import authorizing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.client.authorizing import Authorizing

SECRET = {"FUNCMCP_CLIENT_SECRET": "canary-secret"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Authorizing]:
    with authorizing() as server:
        yield server


@pytest.fixture
def server(shared: Authorizing) -> Authorizing:
    shared.reset()
    return shared


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize(
    ("command", "output"),
    [
        (("inspect", "{url}"), "greet"),
        (("call", "{url}", "greet"), "hello"),
        (("read", "{url}", "menu://today"), "soup"),
        (("prompt", "{url}", "suggest"), "Suggest a dish."),
    ],
)
def test_each_command_signs_in_with_the_secret_in_the_environment(
    server: Authorizing, command: tuple[str, ...], output: str
) -> None:
    arguments = [argument.replace("{url}", server.url) for argument in command]
    ended = funcmcp(*arguments, "--client-credentials", "reports", env=SECRET)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert output in ended.stdout
    assert server.token_headers[0]["authorization"].startswith("Basic ")


def test_the_secret_can_be_in_a_file_and_the_id_in_the_environment(server: Authorizing, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("canary-secret\n")
    variables = {"FUNCMCP_CLIENT_ID": "reports"}
    options = [
        "--client-secret-file",
        str(file),
        "--issuer",
        server.origin,
        "--scope",
        "audit",
        "--scope",
        "orders.read",
    ]
    ended = funcmcp("call", server.url, "greet", *options, env=variables)
    assert (ended.returncode, ended.stdout) == (0, "hello\n")
    assert server.those("token")[0]["scope"] == "audit orders.read"


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_private_key_signs_a_statement_and_tokens_can_be_bound_to_a_key(server: Authorizing, tmp_path: Path) -> None:
    server.token_type = "DPoP"
    file = tmp_path / "key.pem"
    key = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    options = ["--client-credentials", "reports", "--private-key", str(file), "--dpop"]
    ended = funcmcp("call", server.url, "greet", *options)
    assert (ended.returncode, ended.stdout) == (0, "hello\n")
    assert server.those("token")[0]["client_assertion"].count(".") == 2
    assert "dpop" in server.token_headers[0]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_token_of_the_platform_is_the_identity_or_the_credential(server: Authorizing, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("platform-token")
    assert funcmcp("call", server.url, "greet", "--workload-token", str(file)).stdout == "hello\n"
    options = ["--workload-token", str(file), "--client-credentials", "reports"]
    assert funcmcp("call", server.url, "greet", *options).stdout == "hello\n"
    first, second = server.those("token")
    assert (first["assertion"], second["client_assertion"]) == ("platform-token", "platform-token")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--client-credentials", "reports"], "set FUNCMCP_CLIENT_SECRET, or pass --client-secret-file"),
        (["--dpop"], "Add --client-credentials CLIENT_ID"),
        (["--issuer", "https://login.example.com"], "Add --client-credentials CLIENT_ID"),
        (["--client-credentials", "a", "--private-key", "k", "--workload-token", "t"], "Pass one of"),
        (["--client-credentials", "a", "--private-key", "absent.pem"], "--private-key: absent.pem can't be read"),
        (["--client-credentials", "a", "--client-secret-file", "absent"], "--client-secret-file: absent can't be read"),
        (["--workload-token", "absent"], "--workload-token: absent does not exist"),
    ],
)
def test_options_that_are_not_enough_are_one_clear_line(
    server: Authorizing, tmp_path: Path, options: list[str], message: str
) -> None:
    ended = funcmcp("call", server.url, "greet", *options, folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert server.requests == []


def test_a_program_and_a_user_or_a_token_are_not_combined(server: Authorizing) -> None:
    for option in (["--sign-in"], ["--bearer", "x"]):
        ended = funcmcp("call", server.url, "greet", "--client-credentials", "reports", *option, env=SECRET)
        assert ended.returncode == 1
        assert "can't be combined" in ended.stderr


def test_a_server_of_this_machine_takes_no_credentials(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("from funcmcp import MCPServer\n\nmcp = MCPServer('Orders')\n")
    ended = funcmcp("inspect", str(file), "--client-credentials", "reports", env=SECRET)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "--client-credentials is for URLs only. A server on this machine needs no sign-in.\n"


def test_no_output_has_the_secret_also_when_it_is_refused(server: Authorizing) -> None:
    server.answers = [(401, {"error": "invalid_client", "error_description": "unknown client"})]
    ended = funcmcp("call", server.url, "greet", "--client-credentials", "reports", env=SECRET)
    assert ended.returncode == 1
    assert "invalid_client unknown client" in ended.stderr
    assert "canary-secret" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("command", ["inspect", "call", "read", "prompt", "record"])
def test_the_help_says_where_the_secret_is(command: str) -> None:
    text = funcmcp(command, "--help", env={"COLUMNS": "200"}).stdout
    assert "--client-credentials" in text
    assert "FUNCMCP_CLIENT_SECRET" in text
    assert "--client-secret " not in text  # no option takes it
