"""What can go wrong with a sign-in: what the user reads, and what the operator has to do.

How it works: each failure has a cause, a short name that is in the log. The user gets a sentence that says who can
help, and nothing about the configuration. The log has the sentence for the operator. The page
docs/guides/sign-in-troubleshooting.md has the table, which ``make reference`` writes. The errors of Entra
ID are in `entra_errors`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_REPORT_IT: Final = "The sign-in of this server is not configured correctly. Report it to the operator of the server."
_AGAIN: Final = "Start the sign-in again in your application."
_INVALID: Final = f"The code or the token is invalid, expired, used, or of another client. {_AGAIN}"
_DEVELOPERS: Final = "Update your application, or report it to its developers."


class Failure(NamedTuple):
    """A way in which a sign-in can fail.

    Attributes:
        cause: Its name in the log.
        user: A sentence for the user.
        operator: What has happened, and what the operator can do.
    """

    cause: str
    user: str
    operator: str


PROVIDER_AWAY: Final = Failure(
    "provider_away",
    "The identity provider can't be reached. Try again later.",
    "The provider does not answer, or its answer is not usable. Look at its status and at the network of the server.",
)
PROVIDER_ANSWER: Final = Failure(
    "provider_answer",
    "The identity provider has sent an answer that can't be used. Try again later, or report it to the operator of the "
    "server.",
    "The provider has answered in another form than expected; the line says in which. Report it to the provider.",
)
PROVIDER_CERTIFICATE: Final = Failure(
    "provider_certificate",
    _REPORT_IT,
    "The certificate of the provider is not accepted. For an authority of your own: ca_file=, or the "
    "variable SSL_CERT_FILE.",
)
PROVIDER_DOCUMENT: Final = Failure(
    "provider_document",
    _REPORT_IT,
    "The discovery document is not the one of the configured issuer, or is not usable. Open its URL in a browser, and "
    "configure the issuer that is in it, character by character.",
)
PROVIDER_REFUSES_SERVER: Final = Failure(
    "provider_refuses_server",
    _REPORT_IT,
    "The provider does not accept the server. Check client_id and client_secret. A secret may have expired: create a "
    "new one. Users stay signed in meanwhile.",
)
CREDENTIAL_FAILED: Final = Failure(
    "credential_failed",
    PROVIDER_AWAY.user,
    "The function credential= has failed, so the server can't authenticate at the provider. The line has its error.",
)
PROVIDER_REFUSED: Final = Failure(
    "provider_refused",
    f"The identity provider has not confirmed the sign-in. {_AGAIN}",
    "The provider refuses the code or the refresh token of a user, who has to sign in again. If it refuses all users, "
    "its sentence in the log says what the registration lacks.",
)
PROVIDER_DENIED: Final = Failure(
    "provider_denied",
    "The identity provider has not signed you in. Start the sign-in again, or ask its administrator for access.",
    "The user has cancelled the sign-in at the provider, or may not use the registration. Its sentence in the log says "
    "why.",
)
PROVIDER_ERROR: Final = Failure(
    "provider_error",
    f"The identity provider has reported an error. {_AGAIN}",
    "The provider has sent the user back with an error. Its sentence in the log says why.",
)
PROVIDER_USER: Final = Failure(
    "provider_user",
    _REPORT_IT,
    "The server can't read who the user is from the answer of the provider. Check userinfo= and user= of OAuth2.",
)
OTHER_PROVIDER: Final = Failure(
    "other_provider",
    f"The answer came from another identity provider. {_AGAIN}",
    "The answer of the provider names another issuer than the configured one, or none although the provider promises "
    "one. Configure the issuer of the discovery document. If it is right, the answer comes from another provider.",
)
NO_REFRESH_TOKEN: Final = Failure(
    "no_refresh_token",
    "There is no error: the user signs in again when the access token expires.",
    "The provider gives no refresh token. Allow refresh tokens for the registration, or add the scope or parameter "
    'that it wants for them, such as OIDC(scopes=["profile", "email", "offline_access"]).',
)

ID_TOKEN_MISSING: Final = Failure(
    "id_token_missing",
    _REPORT_IT,
    "The answer of the provider has no ID token. Allow the scope openid for the registration. A provider that has "
    "only OAuth 2.0 is not an OpenID provider.",
)
ID_TOKEN_ENCRYPTED: Final = Failure(
    "id_token_encrypted",
    _REPORT_IT,
    "The ID token is encrypted. Switch the encryption of ID tokens off for the registration.",
)
ID_TOKEN_MALFORMED: Final = Failure(
    "id_token_malformed",
    _REPORT_IT,
    "The ID token is not a signed JSON Web Token. Report it to the provider.",
)
ID_TOKEN_ALGORITHM: Final = Failure(
    "id_token_algorithm",
    _REPORT_IT,
    "The ID token is signed with an algorithm that the server does not accept. Choose RS256 or ES256 for the "
    "registration. With HS256 in Authentik: choose a signing key in the settings of its provider.",
)
ID_TOKEN_NO_NONCE: Final = Failure(
    "id_token_no_nonce",
    _REPORT_IT,
    "The ID token has no nonce, although the server has sent one, so that nothing binds the token to the sign-in. Let "
    "the provider return the nonce. For one that never does, OIDC(requires_nonce=False) says what is lost.",
)
ID_TOKEN_OTHER_NONCE: Final = Failure(
    "id_token_other_nonce",
    f"The identity provider has answered for another sign-in. {_AGAIN}",
    "The ID token has the nonce of another sign-in. If it happens again, something between server and provider repeats "
    "answers, or an attacker sends a code of another sign-in.",
)
ID_TOKEN_SUBJECT: Final = Failure(
    "id_token_subject",
    _REPORT_IT,
    "The ID token has no subject (sub), or one that is not a string, such as a number. Let the provider issue it as a "
    "string.",
)
ID_TOKEN_ISSUER: Final = Failure(
    "id_token_issuer",
    _REPORT_IT,
    "The ID token has another issuer than the configured one. Configure the issuer of the discovery document. Some "
    "providers have a setting for the issuer of tokens.",
)
ID_TOKEN_CLIENT: Final = Failure(
    "id_token_client",
    _REPORT_IT,
    "The ID token is for another client (aud, azp). Check client_id.",
)
ID_TOKEN_TIME: Final = Failure(
    "id_token_time",
    _REPORT_IT,
    "The ID token has expired, is not valid yet, or has no times. Compare the clocks of server and provider.",
)
ID_TOKEN_KEY: Final = Failure(
    "id_token_key",
    "The sign-in can't be checked at the moment. Try again in a minute.",
    "The server does not have the key of the ID token: the provider has just changed its keys, or they can't be "
    "requested. A line with event=jwks_fetch_failed has the reason.",
)
ID_TOKEN_SIGNATURE: Final = Failure(
    "id_token_signature",
    _REPORT_IT,
    "The signature of the ID token is invalid. Check that the issuer is the one that issues the tokens.",
)

NOT_ALLOWED: Final = Failure(
    "not_allowed",
    "You may not use this server. Ask its operator for access.",
    "The function allow has refused the user. The digest in user= is that of the other lines about this user.",
)
ALLOW_FAILED: Final = Failure(
    "allow_failed",
    "The server can't determine whether you may use it. Try again later.",
    "The function allow has raised an error, takes more than five seconds, or returns something else than True, False "
    "or scopes. The line with event=oauth_allow_failed has the traceback.",
)
SUBJECT_OF_PROGRAM: Final = Failure(
    "subject_of_program",
    "Your id at the identity provider is the name of a program of this server. Report it to the operator of the "
    "server.",
    "A user has the name of one of OAuthProxy(programs=) as id, and would be the same caller. Give the program another "
    "name.",
)
TENANT: Final = Failure(
    "tenant",
    "Your organization may not use this server. Sign in with another account, or ask the operator for access.",
    "EntraID(tenants=) does not allow the tenant of the user.",
)
TENANTS_FAILED: Final = Failure(
    "tenants_failed",
    "The sign-in can't be checked at the moment. Try again in a minute.",
    "The function of EntraID(tenants=) has raised an error, or takes more than five seconds.",
)
ACCOUNT: Final = Failure(
    "account",
    "This server does not accept this account. Sign in with another account, or ask the operator for access.",
    "The user is of none of the configured organizations or domains.",
)
CLAIMS_TOO_LONG: Final = Failure(
    "claims_too_long",
    "Your account has more groups, roles or other claims than this server can take. Report it to the operator of the "
    "server.",
    "The roles and claims of a user are too long for an access token. Use a store, or keep fewer of them: "
    "OAuthProxy(claims=) names or computes them. The line has the size and the limit.",
)
CLAIMS_FAILED: Final = Failure(
    "claims_failed",
    "The server can't determine what it has to know about you. Try again later.",
    "The function of OAuthProxy(claims=) has failed. The line with event=oauth_claims_failed has the traceback.",
)
INVALID_GRANT: Final = Failure(
    "invalid_grant",
    _INVALID,
    "The code or the refresh token is not one of this server, has expired, was used, or is of another client. With "
    "several processes: compare their keys and clocks.",
)
VERIFIER: Final = Failure(
    "verifier",
    _INVALID,
    "The code came without the verifier of its sign-in (PKCE). The client has mixed up two sign-ins, or the code was "
    "stolen.",
)
OTHER_CLIENT: Final = Failure(
    "other_client",
    _INVALID,
    "A client has sent the code or the refresh token of another client.",
)
OTHER_ADDRESS: Final = Failure(
    "other_address",
    _INVALID,
    "A client has sent a code with another redirect_uri than in its sign-in.",
)
OTHER_KEY: Final = Failure(
    "other_key",
    _INVALID,
    "The code or the refresh token is bound to another key of the client (DPoP), or came without a proof.",
)
SIGN_IN_ENDED: Final = Failure(
    "sign_in_ended",
    _INVALID,
    "The sign-in has ended: by a sign-out, by its time, because the store has lost it, or because a refresh token was "
    "used twice (event=oauth_reuse).",
)
SIGN_IN_BUSY: Final = Failure(
    "sign_in_busy",
    "Another request renews this sign-in. Try again later.",
    "Other requests renew the sign-in, and take long. After a process was killed that did so, it lasts 40 seconds.",
)
STORE_AWAY: Final = Failure(
    "store_away",
    "The store of the server can't be reached. Try again later.",
    "The store of sign-ins does not answer, or takes no more records. It has a line of its own, with the reason.",
)
CLIENT_UNKNOWN: Final = Failure(
    "client_unknown",
    "The server does not know your application. Remove the server from your application and add it again.",
    "The registration of the client was made with keys that the server no longer has. Set FUNCMCP_KEYS to keep them.",
)
CLIENT_SECRET: Final = Failure(
    "client_secret",
    "The server does not accept what your application identifies itself with. Ask its operator for new values.",
    "The program is unknown, or a secret is missing or wrong. Give the application the id and the secret of "
    "OAuthProxy.client, or those in programs= of OAuthProxy.",
)
CLIENT_NOT_ALLOWED: Final = Failure(
    "client_not_allowed",
    "This server does not accept your application. Ask its operator to add it.",
    "OAuthProxy(clients=[...]) does not have the application.",
)
CLIENT_DOCUMENT: Final = Failure(
    "client_document",
    "The server can't find out about your application. Report it to the developers of the application.",
    "The document of the client (CIMD) can't be used; the reason is at the end of the line. Without access to the "
    "internet: OAuthProxy(client_documents=False).",
)
REGISTRATION: Final = Failure(
    "registration",
    f"The server does not register your application. {_DEVELOPERS}",
    "The client has sent a registration that is not allowed; the reason is at the end of the line.",
)
REQUEST: Final = Failure(
    "request",
    f"The request of your application is not valid. {_DEVELOPERS}",
    "The client has sent a request that OAuth, or this server, does not allow; the reason is at the end of the line.",
)
TOO_MANY: Final = Failure(
    "too_many",
    "There are too many requests from your address. Wait a minute, then try again.",
    "One address has sent too many requests. Behind a proxy, set HTTPOptions(proxies=...), so that each caller has an "
    "address of its own.",
)
OTHER_RESOURCE: Final = Failure(
    "other_resource",
    "Your application asks for another server. Add the server again, with its exact URL.",
    "The client asks for a token for another resource. Its URL of the server must be that of the OAuthProxy.",
)
OTHER_BROWSER: Final = Failure(
    "other_browser",
    f"The sign-in was not started in this browser, or has expired. {_AGAIN}",
    "The page was opened in another browser or came from another page, cookies are blocked, or ten minutes are over.",
)

FAILURES: Final = tuple(value for value in globals().copy().values() if isinstance(value, Failure))
"""All failures, in the order of the table."""
