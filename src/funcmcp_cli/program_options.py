"""The options with which a command signs in as a program: client credentials, or the identity of a workload."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - with_options reads the types
from typing import TYPE_CHECKING

from funcmcp._objects.definitions import options_by_name
from funcmcp._text.files import read_text
from funcmcp_cli.failure import Failure
from funcmcp_cli.server_options import Conflict, option

if TYPE_CHECKING:
    from funcmcp.client import ClientCredentials, WorkloadIdentity

SECRET_VARIABLE = "FUNCMCP_CLIENT_SECRET"  # noqa: S105 - the name of a variable
_ID_VARIABLE = "FUNCMCP_CLIENT_ID"
_URL_ONLY = (Conflict.NO_URL,)


@options_by_name
class ProgramOptions:
    """The options of a program that signs in at a URL."""

    client_credentials: str | None = option(
        None,
        "--client-credentials",
        envvar=_ID_VARIABLE,
        metavar="CLIENT_ID",
        help="Sign in at a URL as this client, without a user. Its secret is in the environment variable "
        f"{SECRET_VARIABLE} or in a file, never on the command line.",
        show_default=False,
    )
    client_secret_file: Path | None = option(
        None, metavar="FILE", help="The file with the secret of the client.", show_default=False, conflicts=_URL_ONLY
    )
    private_key: Path | None = option(
        None,
        metavar="FILE",
        help="The PEM file with the private key of the client, in place of a secret (private_key_jwt).",
        show_default=False,
        conflicts=_URL_ONLY,
    )
    workload_token: Path | None = option(
        None,
        metavar="FILE",
        help="The file with a token of the platform: the client's credential with --client-credentials, otherwise the "
        "identity of this workload.",
        show_default=False,
        conflicts=_URL_ONLY,
    )
    issuer: str | None = option(
        None,
        metavar="URL",
        help="The authorization server that may get the credential, by default the first one that the server names.",
        show_default=False,
        conflicts=_URL_ONLY,
    )
    scope: list[str] | None = option(
        None,
        metavar="SCOPE",
        help="A scope to request for the program; may be repeated.",
        show_default=False,
        conflicts=_URL_ONLY,
    )
    dpop: bool = option(
        False, "--dpop", help="Bind the program's tokens to a key of this command (DPoP).", conflicts=_URL_ONLY
    )


def program_of(options: ProgramOptions) -> ClientCredentials | WorkloadIdentity | None:
    """Return how the program gets tokens; None if no option says so.

    Raises:
        Failure: Options are missing or exclude each other, or a file can't be read.
    """
    credentials = (options.client_secret_file, options.private_key, options.workload_token)
    if options.client_credentials is None and options.workload_token is None:
        if any(credentials) or options.issuer or options.scope or options.dpop:
            raise Failure("Add --client-credentials CLIENT_ID, the client whose credential it is.")
        return None
    if sum(credential is not None for credential in credentials) > 1:
        raise Failure("Pass one of --client-secret-file, --private-key and --workload-token.")
    try:
        return _program(options)
    except (ModuleNotFoundError, ValueError) as error:
        raise Failure(str(error)) from error


def _program(options: ProgramOptions) -> ClientCredentials | WorkloadIdentity:
    from funcmcp.client import ClientCredentials, PrivateKeyJWT, WorkloadIdentity  # noqa: PLC0415 - few commands need it

    scopes = tuple(options.scope or ())
    if options.client_credentials is None:
        return WorkloadIdentity(
            _existing(options.workload_token), issuer=options.issuer, scopes=scopes, dpop=options.dpop
        )
    credential: PrivateKeyJWT | Path | None = options.workload_token
    if options.private_key is not None:
        credential = PrivateKeyJWT(_text("--private-key", options.private_key))
    return ClientCredentials(
        options.client_credentials,
        _secret(options.client_secret_file) if credential is None else None,
        credential=credential,
        issuer=options.issuer,
        scopes=scopes,
        dpop=options.dpop,
    )


def _secret(file: Path | None) -> str:
    """Return the secret of the client: in a file, or in the environment."""
    secret = os.environ.get(SECRET_VARIABLE, "") if file is None else _text("--client-secret-file", file).strip()
    if not secret:
        raise Failure(
            f"--client-credentials needs a credential: set {SECRET_VARIABLE}, or pass --client-secret-file, "
            "--private-key or --workload-token."
        )
    return secret


def _existing(file: Path | None) -> Path:
    if file is None or not file.is_file():
        raise Failure(f"--workload-token: {file} does not exist.")
    return file


def _text(name: str, file: Path) -> str:
    try:
        return read_text(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(f"{name}: {file} can't be read: {reason}.") from error
