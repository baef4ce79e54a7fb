"""A plugin for pytest, in the peer's environment."""

from __future__ import annotations

from typing import Any, NoReturn

import _pytest.raises
import _pytest.recwarn
from mcp.server.auth.middleware.auth_context import get_access_token as sdk_access_token

from funcmcp._compat import authorization, dependencies
from funcmcp._compat.context import Context
from funcmcp._compat.request_parts import AccessToken


def fail(reason: str, pytrace: bool = True) -> NoReturn:
    """Fail with an Exception: pytest's own is a BaseException, which ends anyio's runner, and so other tests."""
    raise AssertionError(reason)


_pytest.raises.fail = fail  # type: ignore[assignment, attr-defined]
_pytest.recwarn.fail = fail  # type: ignore[assignment, attr-defined]


# The peers' tests sign a caller in by a context variable of the SDK. Their clients in memory are not those of stdio.
_token_of_context = Context.access_token
_token_of_request = dependencies.get_access_token


def token_of_test() -> AccessToken | None:
    """Return the token that a test has set."""
    token = sdk_access_token()
    return None if token is None else AccessToken(**token.model_dump(include=set(AccessToken.model_fields)))


_caller_of = authorization.caller_of
_current_caller = authorization.current_caller


def caller_of_test(*request: Any) -> authorization.Caller:
    """Return the caller that a test has signed in, or else that of the request; without one, nobody."""
    token = token_of_test()
    if token is None:
        token = (_caller_of(*request) if request else _current_caller()).token
    return authorization.Caller(is_trusted=False, token=token)


Context.access_token = property(  # type: ignore[method-assign, assignment]
    lambda context: token_of_test() or _token_of_context.fget(context)  # type: ignore[attr-defined]
)
dependencies.get_access_token = lambda: token_of_test() or _token_of_request()
authorization.caller_of = authorization.current_caller = caller_of_test
