"""Who is calling."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from funcmcp._auth.owner import lists_tasks, owner_of
from funcmcp._auth.principal import Principal

ALICE = Principal(
    "alice", "https://login.example.com", "app", frozenset({"read"}), frozenset({"admin"}), {"sub": "alice"}, "Alice"
)


def test_the_key_is_the_same_for_every_token_of_a_caller_and_for_nobody_else() -> None:
    again = Principal("alice", "https://login.example.com", "app", claims={"jti": "another"})
    assert again.key == ALICE.key
    different = [
        ("bob", ALICE.issuer, "app"),
        ("alice", "https://evil.example", "app"),
        ("alice", ALICE.issuer, "other"),
    ]
    assert all(Principal(*other).key != ALICE.key for other in different)


def test_a_key_can_not_be_put_together_from_other_parts() -> None:
    assert Principal("b", "a|", "c").key != Principal("b", "a", "|c").key


def test_a_token_without_a_subject_is_a_principal_of_its_own() -> None:
    digest = "9f86d081884c7d65"
    principal = Principal(digest, ALICE.issuer, "app", per_token=True)
    assert principal.key == Principal(digest, ALICE.issuer, "app", per_token=True).key
    assert principal.key != Principal("60303ae22b998861", ALICE.issuer, "app", per_token=True).key
    assert principal.key != Principal(digest, ALICE.issuer, "app").key
    assert owner_of(principal) != owner_of(Principal(digest, ALICE.issuer, "app"))


@pytest.mark.parametrize(
    ("principal", "lists"),
    [(None, False), (ALICE, True), (Principal("9f86d081884c7d65", per_token=True), False)],
)
def test_only_a_caller_with_a_subject_lists_its_tasks(principal: Principal | None, lists: bool) -> None:
    assert lists_tasks(principal) is lists


def test_the_repr_shows_no_claims() -> None:
    assert "secret" not in repr(Principal("alice", claims={"secret": "value"}))


def test_a_principal_does_not_change() -> None:
    values = {"sub": "alice"}
    principal = Principal("alice", claims=values)
    values["sub"] = "bob"
    assert principal.claims == {"sub": "alice"}
    with pytest.raises(FrozenInstanceError):
        principal.subject = "bob"  # type: ignore[misc]
    with pytest.raises(TypeError, match="does not support item assignment"):
        principal.claims["sub"] = "bob"  # type: ignore[index]


def test_a_principal_can_be_a_key_of_a_dict() -> None:
    assert {ALICE: 1}[ALICE] == 1


def test_lists_of_scopes_and_roles_become_sets() -> None:
    principal = Principal("alice", scopes=["read"], roles=["admin"])  # type: ignore[arg-type]
    assert principal.scopes == {"read"}
    assert principal.roles == {"admin"}


@pytest.mark.parametrize("value", ["read", {"admin": False}])
@pytest.mark.parametrize("attribute", ["scopes", "roles"])
def test_one_string_or_an_object_is_no_set_of_scopes(attribute: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"Principal.{attribute} is a set"):
        Principal("alice", **{attribute: value})  # type: ignore[arg-type]


def test_nobody_is_no_principal() -> None:
    with pytest.raises(ValueError, match="needs a subject"):
        Principal("")


def test_an_owner_is_the_same_for_each_token_of_a_principal_and_for_nobody_else() -> None:
    alice = Principal("alice", "issuer", scopes=frozenset({"read"}))
    renewed = Principal("alice", "issuer", scopes=frozenset({"write"}), claims={"jti": "2"})
    assert owner_of(renewed) == owner_of(alice)
    different = [
        Principal("alice"),
        Principal("alice", "issuer", "app"),
        Principal("issueralice"),
        Principal("bob", "issuer"),
    ]
    assert len({owner_of(principal) for principal in [alice, *different]}) == 5
    assert owner_of(None) is None
    assert "alice" not in str(owner_of(alice))
