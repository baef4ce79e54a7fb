"""What a provider refuses ends a sign-in, and what it can't do now does not; with and without a store."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from funcmcp._oauth_proxy.upstream import UpstreamHTTP, UpstreamMisconfiguredError, UpstreamUnavailableError
from funcmcp.auth import OIDC, GitHub
from funcmcp.state import MemorySignIns
from tests.auth.making_tokens import Clock
from tests.oauth_proxy.scripted import OpenIDHTTP, with_keys
from tests.oauth_proxy.stage import LOGIN, Browser, Stage

AGAIN = "Start the sign-in again in your application."
OPERATOR = "Report it to the operator of the server."
LATER = "Try again later."

REFUSALS: list[tuple[int, Any]] = [
    (400, {"error": "invalid_grant"}),
    (403, {"error": "mfa_required", "error_description": "Multifactor authentication required"}),
    (400, {"error": "interaction_required"}),
    (400, {"error": "invalid_request", "error_description": "Session expired"}),
    (400, {"error": "unauthorized_client", "error_description": "User is disabled"}),
    (401, {"error": "unauthorized", "error_description": "User is disabled"}),
    (400, {"error": "invalid_token"}),
    (400, {"error_code": "session_not_found"}),
    (200, {"error": "invalid_code"}),
    (200, {"ok": False, "error": "invalid_refresh_token"}),
    (400, {"error": {"message": "no"}}),
]
OF_OPERATOR: list[tuple[int, Any]] = [
    (401, {"error": "invalid_client", "error_description": "The secret has expired."}),
    (401, {"error": "unauthorized_client", "error_description": "Invalid client or Invalid client credentials"}),
    (404, {"error": "Realm does not exist"}),
]
OUTAGES: list[tuple[int, Any]] = [
    (400, {"error": "temporarily_unavailable"}),
    (400, {"error": "server_error"}),
    (400, {}),
    (200, []),
]


class Refusing(OpenIDHTTP):
    """A provider whose token endpoint answers with what a test sets.

    Attributes:
        token_answer: The answer; None for tokens.
    """

    token_answer: tuple[int, Any] | None = None

    def token(self, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        return super().token(headers, form) if self.token_answer is None else self.token_answer


class OpenIDStage(Stage):
    """A proxy in front of an OpenID provider."""

    def __init__(self, **options: Any) -> None:
        self.http = Refusing(LOGIN, "app")
        self.http.claims = {"sub": "ada"}
        super().__init__(upstream=with_keys(OIDC(LOGIN, "app", "the-secret", clock=Clock()), self.http), **options)

    async def code(self, browser: Browser | None = None, **changes: Any) -> str:
        browser = browser or Browser()
        page = await self.authorize(browser, **changes)
        location = (await self.consent(page, browser)).query
        self.http.claims["nonce"] = location["nonce"]
        back = await self.callback({"code": f"code-{location['state']}"[:99], "state": location["state"]}, browser)
        return back.query["code"]


@pytest.fixture(params=[False, True], ids=["without a store", "with a store"])
async def stage(request: pytest.FixtureRequest) -> OpenIDStage:
    stage = OpenIDStage(store=MemorySignIns() if request.param else None)
    await stage.with_client()
    return stage


async def asked(stage: OpenIDStage, step: str, answer: tuple[int, Any]) -> Any:
    """Send a code or a refresh token while the provider has an answer, and again when it issues tokens."""
    if step == "code":
        code = await stage.code()
        stage.http.token_answer = answer
        first = await stage.exchange(code)
        stage.http.token_answer = None
        return first, await stage.exchange(code)
    token = (await stage.tokens())["refresh_token"]
    stage.http.token_answer = answer
    first = await stage.refresh(token)
    stage.http.token_answer = None
    return first, await stage.refresh(token)


@pytest.mark.parametrize("step", ["code", "refresh"])
@pytest.mark.parametrize("answer", REFUSALS)
async def test_what_the_provider_refuses_is_refused(stage: OpenIDStage, step: str, answer: tuple[int, Any]) -> None:
    refused, again = await asked(stage, step, answer)
    assert (refused.status, refused.json["error"]) == (400, "invalid_grant")
    assert refused.json["error_description"].endswith(AGAIN)
    if stage.options["store"] is not None:  # without one, the provider decides each time
        assert again.json["error"] == "invalid_grant"


@pytest.mark.parametrize("step", ["code", "refresh"])
@pytest.mark.parametrize("answer", OF_OPERATOR)
async def test_what_the_operator_has_to_mend_signs_nobody_out(
    stage: OpenIDStage, step: str, answer: tuple[int, Any], caplog: pytest.LogCaptureFixture
) -> None:
    refused, again = await asked(stage, step, answer)
    assert (refused.status, refused.json["error"]) == (503, "temporarily_unavailable")
    assert refused.header("retry-after") is not None
    assert refused.json["error_description"].endswith(OPERATOR)
    assert again.status == 200
    [line] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "provider_refuses_server: The provider does not accept the server. Check client_id" in line.getMessage()
    assert "the-secret" not in caplog.text


@pytest.mark.parametrize("step", ["code", "refresh"])
@pytest.mark.parametrize("answer", OUTAGES)
async def test_an_outage_signs_nobody_out(
    stage: OpenIDStage, step: str, answer: tuple[int, Any], caplog: pytest.LogCaptureFixture
) -> None:
    refused, again = await asked(stage, step, answer)
    assert (refused.status, refused.json["error"]) == (503, "temporarily_unavailable")
    assert refused.header("retry-after") is not None
    assert refused.json["error_description"].endswith(LATER)
    assert again.status == 200
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_github_names_the_fault_of_the_server_with_status_200(caplog: pytest.LogCaptureFixture) -> None:
    http = Refusing("https://github.com", "app")
    upstream = GitHub("app", "secret", organizations=None)
    upstream._http = http
    http.token_answer = 200, {"error": "incorrect_client_credentials"}
    with pytest.raises(UpstreamMisconfiguredError, match="provider_refuses_server"):
        await upstream.exchange("code", redirect_uri="", verifier="v", nonce="")


async def test_the_text_of_a_provider_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    stage = OpenIDStage()
    await stage.with_client()
    text = "no\r\nWARNING event=oauth_issued user=mallory \x1b[31m\u202e" + "x" * 5000
    await asked(stage, "code", (400, {"error": f"invalid_grant{text}", "error_description": text}))
    [line] = [message for message in caplog.messages if "oauth_upstream_failed" in message]
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 1000


async def test_a_private_certificate_authority_is_named_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl

    import httpx2

    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = 20

    def refuse(*args: object, **options: object) -> None:
        raise httpx2.ConnectError("") from error

    monkeypatch.setattr(httpx2.AsyncClient, "stream", refuse)
    with pytest.raises(UpstreamMisconfiguredError, match="set SSL_CERT_FILE to a file") as caught:
        await UpstreamHTTP().get("https://login.example.com/path?token=secret")
    assert "https://login.example.com: its certificate" in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_an_address_at_which_nothing_listens_is_named() -> None:
    with pytest.raises(UpstreamUnavailableError, match=r"http://127\.0\.0\.1:1: the connection is refused"):
        await UpstreamHTTP().get("http://127.0.0.1:1/document")
