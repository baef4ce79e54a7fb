"""What an operator may choose about HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._transports.http.options import (
    KEEP_ALIVE_VARIABLE,
    PROXIES_VARIABLE,
    ROOT_PATH_VARIABLE,
    HTTPOptions,
    keep_alive_seconds,
    proxies_of_environment,
    root_path_of_environment,
)


def test_nothing_is_allowed_beyond_the_default() -> None:
    options = HTTPOptions()
    assert (tuple(options.allowed_hosts), tuple(options.allowed_origins)) == ((), ())
    assert (options.require_origin, options.proxies) == (False, 0)


@pytest.mark.parametrize("name", ["path", "sse", "websocket"])
def test_a_path_begins_with_a_slash(name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^HTTPOptions\.{name} must begin with a slash, such as '/mcp'; got 'mcp'\.$"
    ):
        HTTPOptions(**{name: "mcp"})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["allowed_hosts", "allowed_origins"])
def test_one_string_is_not_taken_for_a_list_of_characters(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} must be a list of strings\. Write \['\*'\]\."):
        HTTPOptions(**{name: "*"})  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["http://example.com", "example.com/mcp", "https://example.com:8443/"])
def test_a_host_has_no_scheme_and_no_path(host: str) -> None:
    with pytest.raises(ValueError, match=r"which is not a host\. Write 'example\.com' or 'example"):
        HTTPOptions(allowed_hosts=[host])


def test_an_origin_has_a_scheme() -> None:
    with pytest.raises(ValueError, match=r"'example\.com', which is not an origin\. Write 'https://example\.com'\."):
        HTTPOptions(allowed_origins=["*", "example.com"])


@pytest.mark.parametrize(
    "options", [{"sse": "/mcp"}, {"websocket": "/mcp"}, {"sse": "/a", "websocket": "/a"}, {"path": "/", "sse": "/"}]
)
def test_two_endpoints_need_two_paths(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="must differ"):
        HTTPOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"path": None}, {"path": 5}, {"sse": True}, {"websocket": "ws"}])
def test_a_path_is_a_string_with_a_slash(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must begin with a slash"):
        HTTPOptions(**options)


def test_idle_connections_outlive_those_of_usual_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEEP_ALIVE_VARIABLE, raising=False)
    assert keep_alive_seconds() == 95
    monkeypatch.setenv(KEEP_ALIVE_VARIABLE, "620")
    assert keep_alive_seconds() == 620


@pytest.mark.parametrize(("text", "path"), [("", ""), ("/", ""), ("/shop", "/shop"), (" /a/b.c/ ", "/a/b.c")])
def test_the_root_path_has_no_slash_at_its_end(text: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_PATH_VARIABLE, text)
    assert root_path_of_environment() == path


@pytest.mark.parametrize("text", ["shop", "//shop", "https://shop.example.com", "/a?b", "/a b", "/%2e"])
def test_a_root_path_that_is_not_a_plain_path_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_PATH_VARIABLE, text)
    with pytest.raises(ValueError, match="FUNCMCP_ROOT_PATH must be a path such as /shop"):
        root_path_of_environment()


@pytest.mark.parametrize(("text", "number"), [("", None), (" ", None), ("0", 0), (" 2 ", 2)])
def test_the_number_of_proxies_can_be_set(text: str, number: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROXIES_VARIABLE, text)
    assert proxies_of_environment() == number


@pytest.mark.parametrize("text", ["-1", "one", "1.5", "10.0.0.0/8", "1111"])
def test_another_number_of_proxies_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROXIES_VARIABLE, text)
    with pytest.raises(ValueError, match="--proxies or FUNCMCP_PROXIES must be a number of proxies, such as 1; got"):
        proxies_of_environment()
