"""Versions and servers of OpenAPI documents."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import RegistrationError
from funcmcp._authoring.openapi.documents import dialect_of, origin_of, server_url, title_of_document

FETCHED = "https://docs.example/a/openapi.json"


@pytest.mark.parametrize(
    ("members", "dialect"),
    [
        ({"openapi": "3.0.4"}, "3.0"),
        ({"openapi": "3.1.1"}, "3.1"),
        ({"openapi": "3.2.0"}, "3.1"),
        ({"swagger": 2.0}, "2.0"),
    ],
)
def test_a_document_has_the_rules_of_its_version(members: dict[str, Any], dialect: str) -> None:
    assert dialect_of(members) == dialect


@pytest.mark.parametrize(
    "members", [{}, {"openapi": 3.0}, {"swagger": "1.2"}, {"openapi": "4.0"}, {"asyncapi": "3.0.0"}]
)
def test_any_other_document_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match=r"not OpenAPI 3 or Swagger 2\.0"):
        dialect_of(members)


@pytest.mark.parametrize(
    ("members", "document_url", "url"),
    [
        ({"servers": [{"url": "https://a.example/v1/"}, {"url": "https://b.example"}]}, None, "https://a.example/v1"),
        ({"servers": [{"url": "../v1"}]}, FETCHED, "https://docs.example/v1"),
        ({"servers": [{"url": "//a.example/v1"}]}, FETCHED, "https://a.example/v1"),
        ({}, FETCHED, "https://docs.example"),
        ({}, None, None),
        ({"servers": [{"url": "/v1"}]}, None, None),
        ({"servers": [{"url": "https://{a}/{b}"}]}, None, None),
        ({"servers": ["https://a.example"]}, None, None),
        ({"servers": [{"url": "https://user:secret@a.example"}]}, None, None),
        ({"servers": [{"url": "file:///etc/passwd"}]}, None, None),
        ({"servers": [{"url": "https://a.example/v1?key="}]}, None, None),
        ({"servers": [{"url": "https://a.example:99999"}]}, None, None),
    ],
)
def test_the_first_server_is_that_of_requests(members: Any, document_url: str | None, url: str | None) -> None:
    assert server_url({"openapi": "3.0.0", **members}, [], document_url) == url


def test_variables_of_a_server_have_their_defaults() -> None:
    variables = {"region": {"default": "eu", "enum": ["eu", "us"]}, "port": {"default": 8443}}
    servers = [{"url": "https://{region}.a.example:{port}/v1", "variables": variables}]
    assert server_url({"openapi": "3.0.0"}, servers, None) == "https://eu.a.example:8443/v1"


@pytest.mark.parametrize(
    ("members", "document_url", "url"),
    [
        ({"host": "a.example", "basePath": "/v1"}, None, "https://a.example/v1"),
        ({"host": "a.example", "schemes": ["http"]}, None, "http://a.example"),
        ({"host": "a.example", "schemes": ["http", "https"]}, None, "https://a.example"),
        ({"host": "a.example", "schemes": ["ws"]}, None, None),
        ({"basePath": "/v1"}, FETCHED, "https://docs.example/v1"),
        ({}, None, None),
    ],
)
def test_a_document_of_2_0_has_a_host(members: Any, document_url: str | None, url: str | None) -> None:
    assert server_url({"swagger": "2.0", **members}, [], document_url) == url


def test_an_origin_is_a_scheme_a_host_and_a_port() -> None:
    assert origin_of("https://A.example/x") == ("https", "a.example", 443)
    assert origin_of("http://a.example:8000") == ("http", "a.example", 8000)
    for url in (
        "https://a.example@b.example",
        "https://a.example\\b",
        "https://a.example b",
        "//a.example",
        "https://[",
    ):
        assert origin_of(url) is None


@pytest.mark.parametrize(("info", "title"), [({"title": " A "}, "A"), ({"title": 5}, ""), (None, "")])
def test_a_title_is_a_text(info: Any, title: str) -> None:
    assert title_of_document({"info": info}) == title
