"""Which client sends a request to the token endpoint or the revocation endpoint, and with which secret.

How it works: an id and a secret come in the form or as HTTP Basic. Most clients are public: their secret, if a platform
has sent one nonetheless, plays no part. A client of `OAuthProxy.client` has a secret that is derived from its id, and
gets nothing without it. Programs are authenticated in `programs`.

Source: RFC 6749 sections 2.3.1 (both forms; one of them in a request), 5.2 (`invalid_client`, `unauthorized_client`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from funcmcp._auth.basic import read_basic
from funcmcp._auth.tokens.compact import MissingKeyError, TokenError
from funcmcp._oauth_proxy.programs import ASSERTION_TYPE, is_name
from funcmcp._oauth_proxy.settings import log_event
from funcmcp._oauth_proxy.web import OAuthError
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from funcmcp._oauth_proxy.programs import Program
    from funcmcp._oauth_proxy.settings import ProxySettings
    from funcmcp._oauth_proxy.web import Parameters, WebRequest


class LockedError(OAuthError):
    """An address has sent too many wrong secrets of a program. The next one is not compared.

    Attributes:
        seconds: Seconds after which it may send another one.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__("temporarily_unavailable", "Too many wrong secrets; slow down.")
        self.seconds = seconds


class SecretRefusedError(OAuthError):
    """A program is unknown, or the secret or the statement of a program or a client is missing or wrong."""

    def __init__(self, description: str) -> None:
        super().__init__("invalid_client", description)


class Credentials(NamedTuple):
    """The id and the secret of a client in a request. None: the request has none."""

    client_id: str | None
    secret: str | None

    def __repr__(self) -> str:
        return f"Credentials({self.client_id!r}, ...)"


def credentials_of(request: WebRequest, form: Parameters) -> Credentials:
    """Return the credentials in a request; raise OAuthError if they are malformed, or contradict each other."""
    form_id, form_secret = form.get("client_id"), form.get("client_secret")
    authorization = request.headers.get("authorization")
    is_basic = authorization is not None and authorization.partition(" ")[0].lower() == "basic"
    if authorization is None or (form_id is not None and not is_basic):  # a header for another purpose is ignored
        return Credentials(form_id, form_secret)
    basic = read_basic(authorization)
    if basic is None:
        raise OAuthError("invalid_client", "The Authorization header is not Basic with an id and a secret.")
    basic_id, basic_secret = basic
    if basic_id and form_id not in {None, basic_id}:
        raise OAuthError("invalid_client", "The client sends two ids.")
    if basic_secret and form_secret:
        raise OAuthError("invalid_request", "The client sends its secret twice.")
    return Credentials(basic_id or form_id, basic_secret or form_secret)


async def key_of_client(settings: ProxySettings, request: WebRequest, form: Parameters) -> str:
    """Return the key of the client that signs users in; raise OAuthError, or LockedError."""
    client_id, secret = credentials_of(request, form)
    if await _program(settings, request, client_id, secret) is not None:
        raise OAuthError("unauthorized_client", "A program has no users. Its grant_type is client_credentials.")
    key = _registered(settings, client_id)
    if client_id is None or key is None:
        raise OAuthError("invalid_client", "The client is not registered. Register it again.")
    if not settings.clients.is_authenticated(client_id, secret):
        raise SecretRefusedError("The client has a secret, which is missing or wrong.")
    return key


async def program_of(settings: ProxySettings, request: WebRequest, form: Parameters) -> tuple[str, Program]:
    """Return the name and the program that sends a request; raise OAuthError, or LockedError."""
    client_id, secret = credentials_of(request, form)
    if form.get("client_assertion") is not None:
        return await _signing_program(settings, form, client_id, secret)
    program = await _program(settings, request, client_id, secret)
    if client_id is not None and program is not None:
        return client_id, program
    if _registered(settings, client_id) is not None:
        raise OAuthError("unauthorized_client", "Only programs that the operator names may use client_credentials.")
    raise SecretRefusedError("The program is unknown, or its secret is missing or wrong.")


async def _signing_program(
    settings: ProxySettings, form: Parameters, client_id: str | None, secret: str | None
) -> tuple[str, Program]:
    """Return the name and the program that has signed a statement about itself; raise OAuthError."""
    if secret is not None:
        raise OAuthError("invalid_request", "The client sends a secret and a statement. Send one of them.")
    if settings.programs is None or form.get("client_assertion_type") != ASSERTION_TYPE:
        raise SecretRefusedError(f"The client_assertion_type must be {ASSERTION_TYPE}.")
    try:
        return await settings.programs.read_statement(form.get("client_assertion") or "", client_id)
    except MissingKeyError:
        raise OAuthError(
            "temporarily_unavailable", "The keys of the client can't be fetched. Try again later."
        ) from None
    except TokenError as error:
        raise SecretRefusedError(str(error)) from None
    except StoreUnavailableError:
        raise
    except Exception as error:  # a signature that makes a library fail is not valid
        raise SecretRefusedError("The statement can't be verified.") from error


def _registered(settings: ProxySettings, client_id: str | None) -> str | None:
    """Return the key of a client that has registered. A program is not looked up, which would log an unknown client."""
    return None if client_id is None or is_name(client_id) else settings.key_of_client(client_id)


async def _program(
    settings: ProxySettings, request: WebRequest, client_id: str | None, secret: str | None
) -> Program | None:
    """Return the program with these credentials; None for others. Raise LockedError after too many wrong secrets."""
    programs = settings.programs
    if programs is None or client_id is None or secret is None or client_id not in programs:
        return None
    # Only failures with this name count, so that an address that many clients share is not locked by any request.
    account = f"{client_id} {request.caller}"
    seconds = settings.rates.wrong_secrets.wait_of(account)
    if seconds:
        raise LockedError(seconds)
    program = programs.authenticate(client_id, secret)
    if program is None:
        await settings.rates.wrong_secrets.take(account)
        log_event("wrong_secret", client_id)
    return program
