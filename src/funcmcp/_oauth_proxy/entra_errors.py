"""The errors of Entra ID: what a user reads, and what the operator of the server has to do.

How it works: an error of Entra has a number (AADSTS...) in its description. The number only selects two sentences: one
for the user, which says nothing about the registration, and one for the log. What the proxy does depends on the error's
name (``invalid_grant`` and others), because Microsoft changes the numbers. Only a number of the table that is about the
registration signs nobody out, whatever the name is. Errors that Entra shows on a page of
its own, such as a missing redirect URI, are in the table for the guide and for answers of the token endpoint.

Source: Microsoft identity platform, "Microsoft Entra authentication and authorization error codes"; public issues for
9010010, 90009 and 650053 (microsoft/powerbi-modeling-mcp 68, Softeria/ms-365-mcp-server 502, anthropics/claude-code
73460).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NUMBER: Final = re.compile(r"AADSTS([0-9]{4,8})\b")

_OPERATOR_HAS_TO: Final = (
    "The sign-in of this server is not configured correctly. Report it to the operator of the server"
)
_ADMINISTRATOR_HAS_TO: Final = "Ask an administrator of your organization"
_AGAIN: Final = "Start the sign-in again in your application."


class Explanation(NamedTuple):
    """What an error of Entra means.

    Attributes:
        code: The code, such as ``"AADSTS50105"``.
        user: A sentence for the user, with the code.
        operator: What the operator has to do.
        is_of_operator: Whether only the operator can help, so that a new sign-in would not.
    """

    code: str
    user: str
    operator: str
    is_of_operator: bool


_CONFIGURATION: Final[dict[int, str]] = {
    50011: "Register the redirect URI that the server logs at its start, on the platform Web.",
    500113: "The registration has no redirect URI. Register the one that the server logs at its start.",
    700016: "The tenant has no application with this client_id. Check tenant and client_id.",
    50194: (
        "The registration is for one tenant. Choose accounts in any organizational directory, or give EntraID the id "
        "of the tenant in place of organizations."
    ),
    7000112: "The application is disabled in the tenant. Enable it in Enterprise applications.",
    90002: "The tenant does not exist. Check the tenant id.",
    7000215: "The client secret is wrong. Use the value of the secret, not its id, and restart the server.",
    7000222: "The client secret has expired. Create a new one, or use a certificate or a managed identity.",
    7000218: "The registration needs a credential: a secret, a certificate or a managed identity.",
    700025: "The redirect URI is on the platform of a public client. Move it to the platform Web.",
    700027: "The certificate is not registered, or has expired. Upload it under Certificates & secrets.",
    7000274: "The signature of the certificate is not valid. Register the certificate of this key.",
    700024: "The clock of the server is wrong, so that its signatures are not valid now.",
    1000502: "The certificate has expired. Register a new one.",
    700211: (
        "No federated credential has the issuer of the managed identity. Add one for the identity to the registration."
    ),
    700212: "The audience of the federated credential must be api://AzureADTokenExchange.",
    700213: "The subject of the federated credential must be the object id of the managed identity (its principal id).",
    7002138: (
        "The subject of the federated credential differs in upper and lower case from the id of the managed identity."
    ),
    70021: "No federated credential fits the managed identity. Check its issuer, subject and audience.",
    901002: "The request has the parameter resource. The proxy sends none: look for a gateway that adds it.",
    9010010: "The parameter resource does not fit the scopes. The proxy sends none: look for a gateway that adds it.",
    90009: "The application requests a token for itself by a URI. Use its id in the scope.",
    65005: "A requested scope is not in the registration's API permissions, or does not exist.",
    650053: "A requested scope does not exist at the API. Check on_behalf_of under Expose an API.",
    650057: "The API is not in the registration's API permissions. Add it.",
    500011: "The tenant has no API with the name in the scope. Check the scope.",
    28003: "The request for a token has no scope.",
    28000: "One request has scopes of several APIs. Request a token for each API.",
    70011: "A requested scope is invalid. Check its spelling.",
    500131: "The access token of the sign-in is for another application. Check on_behalf_of.",
    7000114: "The application may not make requests on behalf of users.",
}
"""Errors of the registration, or of what the proxy sends: what the operator has to do."""

EXPLANATIONS: Final[dict[int, tuple[str, str]]] = {
    **{code: (_OPERATOR_HAS_TO, advice) for code, advice in _CONFIGURATION.items()},
    # What an administrator of the tenant decides.
    65001: (
        f"{_ADMINISTRATOR_HAS_TO} to consent to this application",
        "Nobody has consented to a permission. Grant admin consent under API permissions.",
    ),
    90094: (f"{_ADMINISTRATOR_HAS_TO} to consent to this application", "Grant admin consent under API permissions."),
    90095: (f"{_ADMINISTRATOR_HAS_TO} to consent to this application", "A user has requested admin consent."),
    650052: (
        f"{_ADMINISTRATOR_HAS_TO} to add this application",
        "The tenant of the user lacks the application, or an API of its permissions. Its administrator has to consent.",
    ),
    50105: (
        f"You are not assigned to this application. {_ADMINISTRATOR_HAS_TO} to assign you",
        "Assign the user, or a group of the user, under Enterprise applications, Users and groups.",
    ),
    53003: (
        f"A rule of your organization blocks this sign-in. {_ADMINISTRATOR_HAS_TO}",
        "Conditional Access blocks the sign-in; the sign-in logs of the tenant name the policy.",
    ),
    53000: (
        "Your organization requires a managed device for this sign-in",
        "Conditional Access requires a compliant device.",
    ),
    53001: (
        "Your organization requires a managed device for this sign-in",
        "Conditional Access requires a joined device.",
    ),
    50020: (
        "This account is not one of the organization. Sign in with another account",
        "The account is not in the tenant.",
    ),
    50034: (
        "This account is not one of the organization. Sign in with another account",
        "The account is not in the tenant.",
    ),
    50057: (f"This account is disabled. {_ADMINISTRATOR_HAS_TO}", "The account is disabled."),
    # What the user does.
    65004: (
        "You have declined Microsoft's question for permission. Start the sign-in again to allow it",
        "The user declined.",
    ),
    50076: (
        f"Your organization requires another proof of who you are. {_AGAIN}",
        "Multifactor authentication is required.",
    ),
    50079: (
        f"You have to set up another proof of who you are. {_AGAIN}",
        "Multifactor authentication has to be set up.",
    ),
    50158: (f"Your organization requires another proof of who you are. {_AGAIN}", "An external challenge is required."),
    50173: (f"Your sign-in was ended. {_AGAIN}", "The tokens of the user were revoked, for example by a new password."),
    700082: (f"Your sign-in has expired. {_AGAIN}", "The refresh token was not used for too long."),
    70008: (f"Your sign-in has expired. {_AGAIN}", "The code or the refresh token has expired."),
    70043: (f"Your sign-in has expired. {_AGAIN}", "Conditional Access limits how long a sign-in lasts."),
    54005: (f"This sign-in was already used. {_AGAIN}", "The code was redeemed before: the client has sent it twice."),
    501481: (f"This sign-in belongs to another one. {_AGAIN}", "The PKCE verifier does not fit the code."),
}


def explanation_of(text: str | None) -> Explanation | None:
    """Return what the error with the number in a text means; None if there is no number, or an unknown one."""
    match = _NUMBER.search(text or "")
    if match is None or int(match[1]) not in EXPLANATIONS:
        return None
    number = int(match[1])
    user, operator = EXPLANATIONS[number]
    code = match[0]
    return Explanation(code, f"{user.removesuffix('.')} ({code}).", operator, number in _CONFIGURATION)
