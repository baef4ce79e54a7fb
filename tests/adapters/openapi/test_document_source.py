"""OpenAPI documents from dicts, files and URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import RegistrationError
from funcmcp._adapters.openapi import document_source
from funcmcp._adapters.openapi.document_source import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

URL = "https://user:secret@docs.example/openapi.json?key=secret"


def answering(monkeypatch: pytest.MonkeyPatch, answer: Callable[[httpx2.Request], httpx2.Response]) -> None:
    """Let all requests for documents have one answer."""
    client = httpx2.Client
    monkeypatch.setattr(httpx2, "Client", lambda **options: client(transport=httpx2.MockTransport(answer), **options))


def test_a_dict_is_a_document() -> None:
    loaded = load({"openapi": "3.0.0", "info": {"title": "A"}})
    assert (loaded.title, loaded.url) == ("A", None)


def test_a_text_in_json_is_refused_with_what_to_write() -> None:
    with pytest.raises(RegistrationError, match=r"Pass json\.loads\(text\)"):
        load('{"openapi": "3.0.0"}')


def test_an_application_is_refused_with_what_to_write() -> None:
    application: Any = lambda scope, receive, send: None  # noqa: E731 - any callable
    with pytest.raises(RegistrationError, match=r"write mcp.tools_from_asgi\(app\)"):
        load(application)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", '\ufeff{"openapi": "3.0.0"}'), ("a.yaml", "openapi: 3.0.0"), ("a", "openapi: '3.0.0'")],
)
def test_a_file_is_json_or_yaml(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert load(path).members == load(str(path)).members == {"openapi": "3.0.0"}


@pytest.mark.parametrize("text", ["[]", "5", "{", '{"a": 1,}', "a: [", ""])
def test_a_file_that_is_no_document_is_explained(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RegistrationError, match=r"a\.json is "):
        load(path)


def test_a_file_that_can_not_be_read_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RegistrationError, match="No such file"):
        load(tmp_path / "nothing.json")
    path = tmp_path / "a.json"
    path.write_text("{}", encoding="utf-8")
    monkeypatch.setattr(document_source, "_MAX_BYTES", 1)
    with pytest.raises(RegistrationError, match="more than 64 MiB"):
        load(path)


def test_a_url_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/openapi.json":
            return httpx2.Response(302, headers={"location": "/v2/openapi.json"})
        return httpx2.Response(200, text="openapi: 3.1.0")

    answering(monkeypatch, answer)
    assert load(URL) == ({"openapi": "3.1.0"}, URL)


def failing(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectTimeout("")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda _: httpx2.Response(404), r"has no OpenAPI document \(HTTP 404\)"),
        (lambda _: httpx2.Response(302, headers={"location": "https://evil.example/x"}), "redirects to https://evil"),
        (lambda _: httpx2.Response(302, headers={"location": "/openapi.json"}), "redirects more than 5 times"),
        (lambda _: httpx2.Response(200, content=b"x" * 100), "has more than 64 MiB"),
        (failing, r"can't be fetched \(ConnectTimeout\)"),
    ],
)
def test_a_url_without_a_document_is_explained(monkeypatch: pytest.MonkeyPatch, answer: Any, words: str) -> None:
    monkeypatch.setattr(document_source, "_MAX_BYTES", 50)
    answering(monkeypatch, answer)
    with pytest.raises(RegistrationError, match=words) as refused:
        load(URL)
    assert "secret" not in str(refused.value)
