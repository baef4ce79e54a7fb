"""Credentials of the author, by the security schemes of a document."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, cast

import pytest

from funcmcp import Context, RegistrationError, ToolError
from funcmcp._authoring.openapi.credentials import Applied, Credentials

SCHEMES: dict[str, Any] = {
    "bearer": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "app": {"type": "apiKey", "in": "query", "name": "app id"},
    "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "tls": {"type": "mutualTLS"},
    "digest": {"type": "http", "scheme": "digest"},
    "broken": {"type": "apiKey", "in": "header", "name": "a\r\nb"},
    "elsewhere": {"$ref": "https://evil.example/schemes.json"},
}


def credentials(auth: Any, *names: str, **members: Any) -> Credentials:
    schemes = {name: SCHEMES[name] for name in names or SCHEMES}
    return Credentials({"openapi": "3.1.0", "components": {"securitySchemes": schemes}, **members}, auth)


async def applied(credential: Credentials, security: Any = None) -> Applied:
    context = cast("Context", "the context")
    return await credential.apply(credential.schemes_for(security), context)


@pytest.mark.parametrize(
    ("name", "auth", "parts"),
    [
        ("bearer", "t", Applied(headers={"authorization": "Bearer t"})),
        ("oauth", "t", Applied(headers={"authorization": "Bearer t"})),
        ("basic", ("a", "b"), Applied(headers={"authorization": f"Basic {b64encode(b'a:b').decode()}"})),
        ("key", "k", Applied(headers={"x-key": "k"})),
        ("app", "a&b", Applied(query=["app%20id=a%26b"])),
        ("session", "a;b", Applied(cookies=["sid=a%3Bb"])),
    ],
)
async def test_a_credential_goes_where_the_document_says(name: str, auth: Any, parts: Applied) -> None:
    assert await applied(credentials(auth, name), [{name: []}]) == parts
    assert await applied(credentials({name: auth}), [{name: []}]) == parts


async def test_an_operation_gets_the_first_alternative_that_the_author_has() -> None:
    credential = credentials({"key": "k", "app": "a"}, security=[{"bearer": []}, {"key": [], "app": []}])
    assert await applied(credential) == Applied(headers={"x-key": "k"}, query=["app%20id=a"])
    assert await applied(credential, [{"app": []}]) == Applied(query=["app%20id=a"])
    unmet: list[Any] = [[], [{}], [{"bearer": []}], [{"key": [], "bearer": []}], "nonsense", [5]]
    for security in unmet:
        assert await applied(credential, security) == Applied()


async def test_a_document_that_requires_nothing_gets_one_credential() -> None:
    assert await applied(credentials("t", "bearer", "key")) == Applied(headers={"authorization": "Bearer t"})


async def test_a_document_without_schemes_gets_a_header() -> None:
    empty = {"openapi": "3.1.0", "security": [{"missing": []}]}
    assert await applied(Credentials(empty, "t")) == Applied(headers={"authorization": "Bearer t"})
    basic = Applied(headers={"authorization": f"Basic {b64encode(b'a:b').decode()}"})
    assert await applied(Credentials({"swagger": "2.0"}, ("a", "b"))) == basic
    assert await applied(Credentials(empty, None)) == Applied()


async def test_a_function_is_called_for_each_request() -> None:
    async def with_context(context: Any) -> str:
        return f"for {context}"

    assert (await applied(credentials(lambda: "t", "bearer"))).headers == {"authorization": "Bearer t"}
    assert (await applied(credentials(with_context, "key"))).headers == {"x-key": "for the context"}
    with pytest.raises(TypeError, match="must be a str"):
        await applied(credentials(lambda: None, "key"))


async def test_a_credential_can_not_add_headers() -> None:
    with pytest.raises(ToolError, match="without line breaks"):
        await applied(credentials("a\r\nX: b", "bearer"))


def test_keys_are_never_arguments() -> None:
    assert credentials(None).hidden == {("header", "X-Key"), ("query", "app id"), ("cookie", "sid")}


@pytest.mark.parametrize(
    ("auth", "names", "words"),
    [
        ({"nothing": "t"}, ("key",), "'nothing', but the security schemes of the document are: key"),
        ({"tls": "t"}, ("tls",), "are: none"),
        (("a", "b"), ("key",), "fits none of the document's security schemes: key"),
        ("t", ("basic",), "takes a pair"),
        (5, ("key",), "not int"),
    ],
)
def test_credentials_that_do_not_fit_are_explained(auth: Any, names: tuple[str, ...], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        credentials(auth, *names)


def test_schemes_of_swagger_are_read() -> None:
    schemes = {"a": {"type": "basic"}, "b": {"type": "apiKey", "in": "query", "name": "key"}}
    document = {"swagger": "2.0", "securityDefinitions": schemes, "security": [{"b": []}]}
    assert Credentials(document, {"b": "k"}).schemes_for(None) == ("b",)
