"""The cookies that a server sets in a session, such as those by which a load balancer finds its instance again.

`http.cookiejar` decides which of them a request has. Source: RFC 6265.
"""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_COOKIES: Final = 50
_MAX_COOKIE_CHARACTERS: Final = 4096
"""The least that RFC 6265 section 6.1 asks of a client. What exceeds it is not kept."""


class SessionCookies:
    """The cookies of one session, in memory."""

    def __init__(self) -> None:
        self._jar = CookieJar(DefaultCookiePolicy(hide_cookie2=True))

    def header_for(self, url: str) -> str | None:
        """Return the value of the header Cookie for a URL, or None if no cookie is for it."""
        if not len(self._jar):
            return None
        request = Request(url)  # noqa: S310 - it is not sent
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie")

    def add(self, url: str, lines: Iterable[str]) -> None:
        """Keep the cookies of a response.

        Args:
            url: The URL that has answered.
            lines: The values of its header lines Set-Cookie.
        """
        request = Request(url)  # noqa: S310 - it is not sent
        for line in lines:
            if line.isascii() and len(line) <= _MAX_COOKIE_CHARACTERS:
                for cookie in self._jar.make_cookies(cast("Any", _Response(line)), request):
                    self._jar.set_cookie_if_ok(cookie, request)
                    if len(self._jar) > _MAX_COOKIES:
                        self._jar.clear(cookie.domain, cookie.path, cookie.name)


class _Response:
    """A response with one line Set-Cookie, as far as `CookieJar` reads it."""

    def __init__(self, line: str) -> None:
        self._line = line

    def info(self) -> _Response:
        """Return the header."""
        return self

    def get_all(self, name: str, default: list[str]) -> list[str]:
        """Return the values of a header field."""
        return [self._line] if name.lower() == "set-cookie" else default
