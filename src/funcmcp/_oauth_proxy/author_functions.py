"""Functions of the author that decide about a user: `OAuthProxy.allow` and `OAuthProxy.claims`.

How it works: a function may ask a database, so it may fail or take long. Both are an outage: nothing is issued, and the
client sends its request again later. A function has five seconds. That holds for async functions only, because one that
is not async blocks the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Final, TypeVar

from funcmcp._oauth_proxy.upstream import UpstreamUnavailableError, failed
from funcmcp._state.line_limit import LineLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._oauth_proxy.failures import Failure
    from funcmcp._oauth_proxy.upstream import User

T = TypeVar("T")

_SECONDS: Final = 5.0
"""A refresh has 40 seconds: 20 for the provider, 5 for userinfo, and 5 for each function."""


class AuthorFunctions:
    """Calls the functions of one option of a proxy.

    Args:
        option: The name of the option.
        failure: What a failure of the function means for users and for the operator.

    Attributes:
        raises: Whether the error of a function is raised as it is, for a test of the author.
    """

    def __init__(self, option: str, failure: Failure) -> None:
        self.raises = False
        self._option = option
        self._failure = failure
        self._log = LineLimit(logging.ERROR)

    async def result_of(self, function: Callable[[User], object], user: User, read: Callable[[object], T]) -> T:
        """Return what a function returns for a user.

        Args:
            function: The function, which may be async.
            user: The user.
            read: Checks and converts what the function returns.

        Raises:
            UpstreamUnavailableError: The function, or *read*, has failed. The log has the traceback, once a minute.
        """
        try:
            async with asyncio.timeout(_SECONDS):
                returned = function(user)
                return read(await returned if inspect.isawaitable(returned) else returned)
        except Exception as error:
            if self.raises:
                raise
            line = "event=oauth_%s: the function of OAuthProxy(%s=) has failed."
            self._log.write(line, self._failure.cause, self._option, error=error)
            raise failed(UpstreamUnavailableError, self._failure, type(error).__name__) from error
