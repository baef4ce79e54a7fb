"""The compact serialization of signed tokens."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from funcmcp._auth.tokens.compact import MAX_TOKEN, SignedToken, TokenError, read, read_object


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def token(header: Any, payload: bytes = b"{}", signature: bytes = b"s") -> str:
    return f"{encode(json.dumps(header).encode())}.{encode(payload)}.{encode(signature)}"


def test_a_token_has_its_parts_and_the_text_that_is_signed() -> None:
    text = token({"alg": "RS256", "kid": "first", "typ": "application/AT+jwt"}, b'{"sub":"a"}', b"\xff\x00")
    assert read(text) == SignedToken(
        algorithm="RS256",
        key_id="first",
        type="at+jwt",
        payload=b'{"sub":"a"}',
        signed=text.rpartition(".")[0].encode("ascii"),
        signature=b"\xff\x00",
    )


def test_the_key_and_the_type_are_optional() -> None:
    parts = read(token({"alg": "RS256"}))
    assert (parts.key_id, parts.type) == (None, None)


@pytest.mark.parametrize(
    "text", ["", "a", "a.b", "a.b.c.d", "..", "a.b.", "é.b.c", " a.b.c", "a.b.c\n", "A.B.C", "AB.e30.AA"]
)
def test_another_text_is_not_a_token(text: str) -> None:
    with pytest.raises(TokenError, match="not a signed JSON Web Token"):
        read(text)


def test_a_token_has_a_maximum_length() -> None:
    unsigned = token({"alg": "RS256"}, signature=b"")
    signature = "A" * ((MAX_TOKEN - len(unsigned)) // 4 * 4)
    assert len(read(unsigned + signature).signature) == len(signature) // 4 * 3
    with pytest.raises(TokenError, match="too long"):
        read(unsigned + signature + "AAAA")


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ([], "header is not a JSON object"),
        (None, "header is not a JSON object"),
        ({}, "has no algorithm"),
        ({"alg": 1}, "is not a string"),
        ({"alg": "RS256", "kid": 1}, "is not a string"),
        ({"alg": "RS256", "typ": ["JWT"]}, "is not a string"),
        ({"alg": "RS256", "crit": ["b64"]}, "extensions that the server does not support"),
        ({"alg": "RS256", "crit": None}, "extensions that the server does not support"),
    ],
)
def test_an_invalid_header_is_an_error(header: Any, text: str) -> None:
    with pytest.raises(TokenError, match=text):
        read(token(header))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"a":NaN}', b"[" * 9000])
def test_a_part_that_is_not_json_is_an_error_without_the_part(data: bytes) -> None:
    with pytest.raises(TokenError, match=r"^The token's payload is not valid JSON\.$"):
        read_object(data, "payload")


def test_a_part_that_is_a_json_object_is_returned() -> None:
    assert read_object(b'{"sub":"a"}', "payload") == {"sub": "a"}
