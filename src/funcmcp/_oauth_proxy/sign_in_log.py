"""The lines of the log about sign-ins that fail.

How it works: people without an account can cause most of these lines. So each kind of line is written once a minute,
and the other lines at the level DEBUG. Each user whom `allow` refuses is a kind, for an audit. There are at most a
hundred kinds in a minute; all further ones are one kind. Texts of clients and providers are escaped and shortened, and
no line has a code, a token, a secret or the name of a user.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Final

from funcmcp._oauth_proxy.failures import CLAIMS_TOO_LONG, NO_REFRESH_TOKEN, NOT_ALLOWED
from funcmcp._oauth_proxy.upstream import UpstreamMisconfiguredError
from funcmcp._state.line_limit import LineLimit, escaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._oauth_proxy.failures import Failure

_logger = logging.getLogger("funcmcp")

_MAX_KINDS: Final = 100
_MAX_MARK: Final = 60
_PERIOD: Final = 60.0


class SignInLog:
    """Writes the lines of one proxy.

    Args:
        clock: Returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._cleared = clock()
        self._limits: dict[tuple[str, ...], LineLimit] = {}
        self._has_warned_of_refresh_tokens = False

    def refused(self, failure: Failure, detail: object = "", *, client: str = "-", user: str = "-") -> None:
        """Write that a request of a client or a browser is refused.

        Args:
            failure: Why.
            detail: What is special about this request.
            client: The key of the client.
            user: The mark of the user.
        """
        reason = failure.operator if not str(detail) else f"{failure.operator} ({detail})"
        line = "event=oauth_refused cause=%s client=%s user=%s reason=%s"
        kind = (failure.cause, user) if failure is NOT_ALLOWED else (failure.cause,)
        level = logging.WARNING if failure is CLAIMS_TOO_LONG else logging.INFO  # only the operator can help
        limit = self._limit(level, "refused", *kind)
        limit.write(line, failure.cause, escaped(client), user, escaped(reason))

    def upstream_failed(self, step: str, error: Exception, *, is_of_browser: bool = False) -> None:
        """Write that the identity provider has refused something, or that a request to it has failed.

        Args:
            step: The step of the sign-in.
            error: The error.
            is_of_browser: Whether its text came with the browser, which can send any number of texts.
        """
        reason = str(error)
        kind, mark = type(error).__name__, "" if is_of_browser else reason[:_MAX_MARK]
        level = logging.ERROR if isinstance(error, UpstreamMisconfiguredError) else logging.WARNING
        limit = self._limit(level, step, kind, mark)
        limit.write("event=oauth_upstream_failed step=%s kind=%s reason=%s", step, kind, escaped(reason))

    def no_refresh_token(self, access_seconds: float) -> None:
        """Write once that the identity provider gives no refresh tokens.

        Args:
            access_seconds: Seconds for which access tokens are valid, after which users have to sign in again.
        """
        if not self._has_warned_of_refresh_tokens:
            self._has_warned_of_refresh_tokens = True
            _logger.warning(
                "event=oauth_no_refresh_token: users sign in again after %d minutes. %s",
                access_seconds // 60,
                NO_REFRESH_TOKEN.operator,
            )

    def _limit(self, level: int, *kind: str) -> LineLimit:
        """Return the limit for a kind of line."""
        key, now = (str(level), *kind), self._clock()
        if key not in self._limits and len(self._limits) >= _MAX_KINDS:
            if now - self._cleared >= _PERIOD:
                self._limits.clear()
                self._cleared = now
            else:
                key = (str(level),)
        return self._limits.setdefault(key, LineLimit(level, self._clock))
