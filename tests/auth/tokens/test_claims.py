"""The claims of a token, without signatures: rules, and the principal that they name."""

from __future__ import annotations

from typing import Any, cast

import pytest

from funcmcp._auth.tokens.claims import TokenRules, check_audience, check_issuer, claim_at
from funcmcp._auth.tokens.compact import TokenError
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW

CLAIMS: dict[str, Any] = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 60}


@pytest.mark.parametrize(("kind", "accepted"), [("at+jwt", True), ("jwt", False), (None, False), ("", False)])
def test_only_access_tokens_are_accepted_by_default(kind: str | None, accepted: bool) -> None:
    if accepted:
        TokenRules().check_type(kind)
        return
    with pytest.raises(TokenError, match=r"The type \(typ\) of the token must be at\+jwt\."):
        TokenRules().check_type(kind)


def test_a_token_without_a_type_counts_as_jwt() -> None:
    TokenRules(types=["application/JWT"]).check_type(None)


@pytest.mark.parametrize(
    ("seconds", "text"), [(59.9, None), (60.0, None), (119.9, None), (120.0, "has expired"), (1e9, "has expired")]
)
def test_a_token_expires_after_the_leeway(seconds: float, text: str | None) -> None:
    rules = TokenRules(leeway=60.0)
    if text is None:
        assert rules.check(CLAIMS, NOW + seconds) == NOW + 60
        return
    with pytest.raises(TokenError, match=text):
        rules.check(CLAIMS, NOW + seconds)


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"exp": None}, "not a number"),
        ({"exp": "1900000000"}, "not a number"),
        ({"exp": True}, "not a number"),
        ({"exp": 2**53}, "not a number"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"nbf": "0"}, "not a number"),
        ({"iat": float("nan")}, "not a number"),
        ({"nonce": "n"}, "is an ID token"),
        ({"token_use": "id"}, "is an ID token"),
        ({"typ": "ID"}, "is an ID token"),
    ],
)
def test_an_invalid_claim_is_an_error(claims: dict[str, Any], text: str) -> None:
    with pytest.raises(TokenError, match=text):
        TokenRules().check({**CLAIMS, **claims}, NOW)


def test_a_token_needs_an_expiry() -> None:
    with pytest.raises(TokenError, match="has no expiry"):
        TokenRules().check({"sub": "alice"}, NOW)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"tid": "t", "scp": "a"}, None),
        ({"tid": "t", "roles": ["r"]}, None),
        ({"tid": "t"}, "has none of the claims scp, roles"),
        ({"tid": "t", "scp": ""}, "has none of the claims scp, roles"),
        ({"tid": "u", "scp": "a"}, "lacks the claim tid, or has another value"),
        ({"scp": "a"}, "lacks the claim tid, or has another value"),
    ],
)
def test_required_claims_and_groups_must_be_present(claims: dict[str, Any], reason: str | None) -> None:
    rules = TokenRules(required={"tid": "t", "sub": None}, any_of=[("scp", "roles")])
    if reason is None:
        assert rules.check({**CLAIMS, **claims}, NOW) == CLAIMS["exp"]
        return
    with pytest.raises(TokenError, match=reason):
        rules.check({**CLAIMS, **claims}, NOW)


def test_the_principal_has_the_claims_of_common_issuers() -> None:
    claims = {**CLAIMS, "azp": "app", "scope": "read write", "scp": ["admin"], "groups": ["staff"], "name": "Alice"}
    principal = TokenRules(roles_claim="groups").principal(claims)
    assert principal.key == (ISSUER, "app", "alice")
    assert principal.scopes == {"read", "write", "admin"}
    assert principal.roles == {"staff"}
    assert principal.name == "Alice"
    assert principal.claims["exp"] == CLAIMS["exp"]


@pytest.mark.parametrize("claims", [{"sub": None}, {"sub": ""}, {"sub": 1}, {"scope": 1}, {"roles": [1]}])
def test_a_principal_needs_a_subject_and_lists_of_strings(claims: dict[str, Any]) -> None:
    with pytest.raises(TokenError):
        TokenRules().principal({**CLAIMS, **claims})


@pytest.mark.parametrize("issuer", [None, "", f"{ISSUER}/", ISSUER.upper(), [ISSUER], 1])
def test_the_issuer_matches_exactly(issuer: Any) -> None:
    check_issuer(CLAIMS, frozenset({ISSUER}))
    with pytest.raises(TokenError, match="does not accept the issuer"):
        check_issuer({"iss": issuer}, frozenset({ISSUER}))


@pytest.mark.parametrize("audience", [AUDIENCE, f"{AUDIENCE}/", ["other", AUDIENCE]])
def test_one_of_the_audiences_matches_apart_from_a_slash_at_the_end(audience: Any) -> None:
    check_audience({"aud": audience}, frozenset({AUDIENCE}))


@pytest.mark.parametrize(
    ("audience", "text"),
    [
        (None, "has no audience"),
        ({}, "has no audience"),
        ([1], "has no audience"),
        ([], "for another audience"),
        ("", "for another audience"),
        (f"{AUDIENCE}/more", "for another audience"),
        (AUDIENCE[:-1], "for another audience"),
    ],
)
def test_any_other_audience_is_an_error(audience: Any, text: str) -> None:
    with pytest.raises(TokenError, match=text):
        check_audience({"aud": audience}, frozenset({AUDIENCE}))


NESTED: dict[str, Any] = {
    "realm_access": {"roles": ["cook"]},
    "resource_access": {"orders.example.com": {"roles": ["admin"]}},
    "https://example.com/roles": ["chef"],
    "a.b": 1,
    "a": {"b": 2},
    "list": [{"roles": ["x"]}],
    "text": "abc",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("realm_access.roles", ["cook"]),
        (("realm_access", "roles"), ["cook"]),
        (["resource_access", "orders.example.com", "roles"], ["admin"]),
        ("resource_access.orders.example.com.roles", None),
        ("https://example.com/roles", ["chef"]),
        ("a.b", 1),
        (("a", "b"), 2),
        ("text", "abc"),
        ("text.abc", None),
        ("text.upper", None),
        ("list.0.roles", None),
        ("realm_access.__class__", None),
        ("__class__", None),
        ("missing", None),
        ("missing.roles", None),
        ("", None),
        ("realm_access..roles", None),
    ],
)
def test_a_claim_is_read_at_its_path(path: Any, value: object) -> None:
    assert claim_at(NESTED, path) == value


def principal_of(rules: TokenRules, **claims: Any) -> tuple[list[str], list[str], str]:
    principal = rules.principal({**CLAIMS, **claims})
    return sorted(principal.scopes), sorted(principal.roles), principal.subject


@pytest.mark.parametrize(
    ("rules", "claims", "expected"),
    [
        ({}, {"permissions": ["a"], "scope": "b"}, ["b"]),
        ({"scope_claims": ["scope", "permissions"]}, {"permissions": ["a", "a"], "scope": "b"}, ["a", "b"]),
        ({"scope_claims": ["permissions"]}, {"permissions": ["a"], "scope": "b"}, ["a"]),
        ({"scope_claims": ["scp", "roles"]}, {"roles": ["orders.read"]}, ["orders.read"]),
        ({"scope_claims": ["realm_access.roles"]}, NESTED, ["cook"]),
        ({"scope_prefix": "https://api/"}, {"scope": "https://api/a https://api/b"}, ["a", "b"]),
        ({"scope_prefix": "https://api/"}, {"scope": "a openid https://api/ https://api.evil/a"}, []),
        ({"scope_prefix": "https://api/"}, {"scope": "https://api/https://api/a"}, ["https://api/a"]),
        ({"scope_prefix": "https://api/"}, {"scope": "HTTPS://API/a x https://api/a"}, ["a"]),
    ],
)
def test_scopes_are_read_where_the_issuer_writes_them(
    rules: dict[str, Any], claims: dict[str, Any], expected: list[str]
) -> None:
    assert principal_of(TokenRules(**rules), **claims)[0] == expected


@pytest.mark.parametrize(
    ("path", "claims", "expected"),
    [
        ("roles", {"roles": "Domain Admins"}, ["Domain Admins"]),
        ("roles", {"roles": ["a", "", "b"]}, ["a", "b"]),
        ("realm_access.roles", NESTED, ["cook"]),
        (("resource_access", "orders.example.com", "roles"), NESTED, ["admin"]),
        ("https://example.com/roles", NESTED, ["chef"]),
        ("groups", {}, []),
    ],
)
def test_roles_are_read_where_the_issuer_writes_them(path: Any, claims: dict[str, Any], expected: list[str]) -> None:
    assert principal_of(TokenRules(roles_claim=path), **claims)[1] == expected


@pytest.mark.parametrize("value", [5, {"a": 1}, [5], [["a"]], True])
def test_scopes_of_another_type_are_an_error(value: object) -> None:
    with pytest.raises(TokenError, match="neither a string nor a list"):
        principal_of(TokenRules(scope_claims=["permissions"]), permissions=value)


PROGRAMS = TokenRules(subject_claims=("sub", "client_id"))


@pytest.mark.parametrize(
    ("claims", "subject"),
    [({}, "alice"), ({"client_id": "job"}, "alice"), ({"sub": None, "client_id": "job"}, "job")],
)
def test_a_token_without_a_subject_is_its_client(claims: dict[str, Any], subject: str) -> None:
    assert principal_of(PROGRAMS, **claims)[2] == subject


@pytest.mark.parametrize(
    "claims",
    [{"sub": "", "client_id": "job"}, {"sub": 5, "client_id": "job"}, {"sub": None}, {"sub": None, "client_id": ["a"]}],
)
def test_a_malformed_subject_is_an_error(claims: dict[str, Any]) -> None:
    with pytest.raises(TokenError, match="no subject"):
        principal_of(PROGRAMS, **claims)


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ({"client_id": "job"}, None),
        ({"client_id": "evil"}, "another client"),
        ({"azp": "job"}, "another client"),
        ({"client_id": ["job"]}, "another client"),
        ({}, "another client"),
        ({"client_id": "job", "aud": "https://other"}, "another audience"),
        ({"client_id": "job", "aud": None}, "no audience"),
        ({"client_id": "job", "aud": []}, "another audience"),
        ({"client_id": "evil", "aud": AUDIENCE}, None),
    ],
)
def test_only_the_clients_that_are_named_need_no_audience(claims: dict[str, Any], text: str | None) -> None:
    if text is None:
        check_audience(claims, frozenset({AUDIENCE}), ["job"])
        return
    with pytest.raises(TokenError, match=text):
        check_audience(claims, frozenset({AUDIENCE}), ["job"])


@pytest.mark.parametrize("name", ["scope_claims", "subject_claims", "clients_without_audience"])
def test_one_string_is_not_a_list_of_names(name: str) -> None:
    with pytest.raises(TypeError, match=f"TokenRules.{name} is a list of strings"):
        TokenRules(**cast("dict[str, Any]", {name: "scope"}))
