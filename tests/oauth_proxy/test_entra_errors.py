"""Each error of Entra ID leads to an answer that says what to do. Entra is a script of our own: scripted_entra.py."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from funcmcp._oauth_proxy.entra_errors import explanation_of
from funcmcp.auth import EntraID
from tests.auth.making_tokens import NOW
from tests.oauth_proxy.scripted import APP, TENANT, with_keys
from tests.oauth_proxy.scripted_entra import SECRET, MicrosoftPage, ScriptedEntra
from tests.oauth_proxy.stage import Browser, Stage

OPERATOR = "Report it to the operator"
ADMINISTRATOR = "Ask an administrator"


class EntraStage(Stage):
    """A proxy in front of a scripted Entra.

    Attributes:
        entra: The script.
    """

    def __init__(self, entra: ScriptedEntra | None = None, secret: str | None = SECRET, **options: Any) -> None:
        self.entra = entra or ScriptedEntra()
        upstream = with_keys(EntraID(TENANT, APP, secret, clock=self.entra.clock, **options), self.entra)
        super().__init__(upstream=upstream)
        self.clock = self.entra.clock
        self.options["clock"] = self.clock
        self.proxy = self.instance()
        self.upstream = self.entra  # type: ignore[assignment]  # it signs in as the other script does


async def started(entra: ScriptedEntra, **options: Any) -> tuple[EntraStage, Browser, str]:
    """Return a stage, a browser whose user has consented, and where it goes at Entra."""
    stage = EntraStage(entra, **options)
    await stage.with_client()
    browser = Browser()
    page = await stage.authorize(browser)
    return stage, browser, (await stage.consent(page, browser)).location


async def test_a_user_signs_in_refreshes_and_is_called_by_name() -> None:
    stage = EntraStage()
    await stage.with_client()
    tokens = await stage.tokens()
    caller = await stage.caller_of(tokens["access_token"])
    assert (caller.subject, caller.name, caller.claims["tid"]) == (f"{TENANT}.ada-object", "Ada", TENANT)
    renewed = await stage.refresh(tokens["refresh_token"])
    assert renewed.status == 200
    assert not any("resource" in form for *_, form in stage.entra.requests)


@pytest.mark.parametrize(
    ("entra", "client_id", "code"),
    [
        (ScriptedEntra(redirect_uris=[]), APP, "AADSTS50011"),
        (ScriptedEntra(), TENANT, "AADSTS700016"),
    ],
)
async def test_what_microsoft_shows_itself_is_in_the_table_for_the_guide(
    entra: ScriptedEntra, client_id: str, code: str
) -> None:
    upstream = with_keys(EntraID(TENANT, client_id, SECRET), entra)
    stage = await Stage(upstream=upstream).with_client()
    browser = Browser()
    location = (await stage.consent(await stage.authorize(browser), browser)).location
    with pytest.raises(MicrosoftPage, match=code):
        entra.sign_in(location)
    explanation = explanation_of(code)
    assert explanation is not None
    assert OPERATOR in explanation.user


@pytest.mark.parametrize(
    ("error", "for_client", "for_user", "for_operator"),
    [
        (("access_denied", 65004, "User declined to consent"), "access_denied", "You have declined", "declined"),
        (("interaction_required", 65001, "not consented"), "access_denied", ADMINISTRATOR, "Grant admin consent"),
        (("access_denied", 50105, "not assigned to a role"), "access_denied", ADMINISTRATOR, "Users and groups"),
        (("access_denied", 90094, "Admin consent"), "access_denied", ADMINISTRATOR, "Grant admin consent"),
        (("access_denied", 53003, "Blocked"), "access_denied", "A rule of your organization", "Conditional Access"),
        (("invalid_client", 650053, "scope doesn't exist"), "server_error", OPERATOR, "Expose an API"),
        (("invalid_resource", 500011, "not found"), "server_error", OPERATOR, "Check the scope"),
        (("server_error", 123456789, "new"), "server_error", "has reported an error", "server_error"),
    ],
)
async def test_an_error_of_the_sign_in_reaches_the_user_as_a_sentence_and_the_operator_with_its_code(
    error: Any, for_client: str, for_user: str, for_operator: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage, browser, location = await started(ScriptedEntra(sign_in_error=error))
    with caplog.at_level(logging.WARNING, "funcmcp"):
        back = await stage.callback(stage.entra.sign_in(location), browser)
    assert back.status == 302
    assert (back.query["error"], back.query["state"]) == (for_client, "the client's state")
    assert for_user in back.query["error_description"]
    assert error[2] not in back.query["error_description"]
    assert '"' not in back.query["error_description"]
    (line,) = caplog.messages
    assert f"AADSTS{error[1]}" in line
    assert for_operator in line


@pytest.mark.parametrize("scope", ["openid", f"openid {APP}/access_as_user"])
async def test_entra_would_refuse_the_parameter_that_clients_send(scope: str) -> None:
    stage, _, location = await started(ScriptedEntra())
    assert "resource" in stage.request()
    answer = stage.entra.sign_in(f"{location}&resource=https%3A%2F%2Forders.example.com%2Fmcp&scope={scope}")
    code = "AADSTS9010010" if APP in scope else "AADSTS901002"
    assert answer["error_description"].startswith(code)
    explanation = explanation_of(answer["error_description"])
    assert explanation is not None
    assert "gateway" in explanation.operator


@pytest.mark.parametrize(
    ("entra", "options", "status", "error", "texts"),
    [
        ({"secrets": {}}, {}, 503, "temporarily_unavailable", (OPERATOR, "AADSTS7000215: The client secret is wrong")),
        (
            {"secrets": {SECRET: NOW}},
            {},
            503,
            "temporarily_unavailable",
            (OPERATOR, "AADSTS7000222: The client secret"),
        ),
        (
            {},
            {"secret": None, "credential": lambda: "an identity's token"},
            503,
            "temporarily_unavailable",
            (OPERATOR, "AADSTS700213: The subject of the federated credential"),
        ),
        ({"claims": {"acct": 1}}, {}, 400, "invalid_grant", ("does not accept guests", "guests=True")),
        ({"claims": {"hasgroups": True}}, {}, 400, "invalid_grant", ("more groups", "app roles")),
        ({"exposed": set()}, {"on_behalf_of": "tools"}, 0, "server_error", (OPERATOR, "AADSTS650053")),
    ],
)
async def test_a_wrong_configuration_says_so_and_does_not_sign_anybody_out(
    entra: Any, options: Any, status: int, error: str, texts: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    for_user, for_operator = texts
    stage, browser, location = await started(ScriptedEntra(**entra), **options)
    with caplog.at_level(logging.WARNING, "funcmcp"):
        back = await stage.callback(stage.entra.sign_in(location), browser)
        if status:
            answer = await stage.exchange(back.query["code"])
            assert answer.status == status
            body = answer.json
        else:
            body = back.query
    assert body["error"] == error
    assert for_user in body["error_description"]
    assert for_operator in caplog.text


async def test_a_secret_that_has_expired_leaves_the_sign_ins_of_users_alone() -> None:
    stage = EntraStage()
    await stage.with_client()
    tokens = await stage.tokens()
    stage.entra.secrets[SECRET] = NOW
    answer = await stage.refresh(tokens["refresh_token"])
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.header("retry-after") is not None
    stage.entra.secrets[SECRET] = NOW + 1000
    assert (await stage.refresh(tokens["refresh_token"])).status == 200


@pytest.mark.parametrize(
    ("error", "for_user"),
    [
        (("invalid_grant", 50057, "The user account is disabled."), "This account is disabled"),
        (("invalid_grant", 50173, "The grant was revoked."), "Your sign-in was ended"),
        (("invalid_grant", 700082, "The refresh token has expired."), "Your sign-in has expired"),
        (("interaction_required", 50076, "Use multi-factor authentication."), "another proof of who you are"),
        (("interaction_required", 50158, "External challenge."), "another proof of who you are"),
        (("invalid_grant", 123456789, "new"), "has not confirmed the sign-in. Start the sign-in again"),
    ],
)
async def test_a_refresh_that_entra_refuses_ends_the_sign_in_and_says_why(error: Any, for_user: str) -> None:
    stage = EntraStage()
    await stage.with_client()
    tokens = await stage.tokens()
    stage.entra.refresh_error = error
    answer = await stage.refresh(tokens["refresh_token"])
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")
    assert for_user in answer.json["error_description"]


async def test_a_code_that_is_sent_twice_has_an_explanation() -> None:
    stage = EntraStage()
    await stage.with_client()
    code = await stage.code()
    assert (await stage.exchange(code)).status == 200
    answer = await stage.exchange(code)
    assert answer.json["error_description"].startswith("This sign-in was already used")


@pytest.mark.parametrize("text", [None, "", "AADSTS", "AADSTS1", "AADSTS999999999999", "no number"])
def test_a_text_without_a_known_number_has_no_explanation(text: str | None) -> None:
    assert explanation_of(text) is None
