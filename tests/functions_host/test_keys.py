"""Keys of a function app: where they come from, what they open, and that no message repeats one."""

from __future__ import annotations

import pytest

from funcmcp._transports.http.messages import HttpRequest
from funcmcp_host.keys import MCP_NAMES, NAMES_BY_LEVEL, Keys, KeysError

MCP, DEFAULT, MASTER = "m" * 16, "d" * 16, "M" * 16
ENVIRONMENT = {"FUNCMCP_HOST_KEYS": f"mcp_extension={MCP}, default={DEFAULT},_master={MASTER}"}


class Request(HttpRequest):
    def __init__(self, header: str | None, query: str = "") -> None:
        super().__init__("POST", "/", [] if header is None else [(b"x-functions-key", header.encode())])
        self._query_string = query

    @property
    def query_string(self) -> str:
        return self._query_string


@pytest.mark.parametrize(
    ("level", "header", "query", "passes"),
    [
        ("mcp", MCP, "", True),
        ("mcp", MASTER, "", True),
        ("mcp", DEFAULT, "", False),
        ("mcp", None, f"code={MCP}", True),
        ("mcp", None, "code=", False),
        ("mcp", None, f"CODE={MCP}", True),
        ("mcp", None, f"code={MCP}&code=wrong", True),
        ("mcp", None, f"code=wrong&code={MCP}", False),
        ("mcp", None, f"code=&Code={MCP}", False),
        ("mcp", None, "", False),
        ("mcp", "", "", False),
        ("mcp", MCP[:-1], "", False),
        ("mcp", "wrong", f"code={MCP}", False),
        ("function", DEFAULT, "", True),
        ("function", MASTER, "", True),
        ("function", MCP, "", False),
        ("admin", MASTER, "", True),
        ("admin", DEFAULT, "", False),
    ],
)
def test_a_key_opens_what_it_is_for(level: str, header: str | None, query: str, passes: bool) -> None:
    names = MCP_NAMES if level == "mcp" else NAMES_BY_LEVEL[level]
    refusal = Keys.of_environment(ENVIRONMENT).refusal(Request(header, query), names)
    assert (refusal is None) is passes
    if refusal is not None:
        assert refusal.status == 401
        text = f"Send the key {' or '.join(names)} of this function app in the header x-functions-key."
        assert text.encode() in bytes(refusal.body)  # type: ignore[arg-type] # a refusal is never a stream


def test_without_the_variable_there_are_no_keys() -> None:
    assert not Keys.of_environment({})
    assert not Keys.of_environment({"FUNCMCP_HOST_KEYS": " , "})


@pytest.mark.parametrize("text", ["short=1", "mcp_extension=short", "mcp_extension", f"other={MCP}", f"={MCP}"])
def test_keys_that_cannot_be_used_are_an_error_that_does_not_repeat_them(text: str) -> None:
    with pytest.raises(KeysError) as error:
        Keys.of_environment({"FUNCMCP_HOST_KEYS": text})
    assert "short=1" not in str(error.value)
    assert MCP not in str(error.value)


def test_without_any_key_everything_is_open_unless_keys_are_required() -> None:
    assert Keys.of_environment({}).refusal(Request(None), MCP_NAMES) is None
    for keys in (Keys.of_environment({}, required=True), Keys.of_environment({"FUNCMCP_HOST_KEYS": f"default={MCP}"})):
        refusal = keys.refusal(Request(None), MCP_NAMES)
        assert refusal is not None
        assert refusal.status == 401
        assert keys.refusal(Request(None), NAMES_BY_LEVEL["anonymous"]) is None
        assert not keys.has_any(MCP_NAMES)


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("", ""),
        (f"code={MCP}", ""),
        (f"a=1&code={MCP}&b=x%20y", "a=1&b=x%20y"),
        (f"c%6Fde={MCP[:-1]}%6D", ""),
        (f"code={MCP}&code=x", "code=x"),
        ("code=of-a-sign-in&state=1", "code=of-a-sign-in&state=1"),
        (f"CODE={MCP}&code=%ff", "code=%ff"),
    ],
)
def test_a_query_loses_its_key_and_nothing_else(query: str, rest: str) -> None:
    assert Keys.of_environment(ENVIRONMENT).without_key(query) == rest
    assert Keys.of_environment({}).without_key(query) == query
