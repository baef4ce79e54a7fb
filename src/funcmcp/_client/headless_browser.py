"""A user with a browser, for tests over HTTP: visits a server on this machine, and allows what it asks for."""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from urllib.parse import parse_qsl, urljoin, urlsplit

from funcmcp._client.errors import SignInError, one_line
from funcmcp._oauth_proxy.headless import read_page
from funcmcp._objects.public_names import public
from funcmcp._protocol.loopback import is_loopback

_MAX_STEPS: Final = 20
_SECONDS: Final = 30.0
_FIRST_ERROR: Final = 400


@public("funcmcp.testing")
async def allow_sign_in(url: str) -> dict[str, str]:
    """Do as a user with a browser who allows an application what it asks for, at a server on this machine.

    For tests over HTTP with a server that signs users in without a page of a provider, such as ``funcmcp run
    --sign-in-as ada``: ``SignIn(open_browser=allow_sign_in)`` for the client of `funcmcp.client`. A client of another
    library gets the parameters that this function returns.

    Args:
        url: The address that the client would open in a browser, on a loopback address.

    Returns:
        The parameters with which the user returns to the client, such as ``code`` and ``state``. If the client listens
        at that address, it gets them there as well.

    Raises:
        SignInError: An address is not on this machine, or the server refuses the sign-in.
    """
    import httpx2  # noqa: PLC0415 - needs the extra `client`

    back = dict(parse_qsl(urlsplit(url).query)).get("redirect_uri")
    async with httpx2.AsyncClient(timeout=_SECONDS, trust_env=False) as browser:
        answer = await browser.get(_checked(url))
        for _ in range(_MAX_STEPS):
            address = str(answer.url)
            if answer.is_redirect:
                address = _checked(urljoin(address, answer.headers["location"]))
                if back is not None and _without_query(address) == _without_query(back):
                    with suppress(httpx2.HTTPError):  # some clients get the parameters elsewhere
                        await browser.get(address)
                    return dict(parse_qsl(urlsplit(address).query))
                answer = await browser.get(address)
                continue
            page = read_page(answer.text)
            if answer.status_code >= _FIRST_ERROR or page.action is None:
                place, reason = _without_query(address), page.heading or f"HTTP status {answer.status_code}"
                raise SignInError(f"{one_line(place)} does not go on with the sign-in: {one_line(reason)}")
            origin = "://".join(urlsplit(address)[:2])
            action = _checked(urljoin(address, page.action))
            answer = await browser.post(action, data=page.fields, headers={"origin": origin})
    raise SignInError(f"The sign-in has more than {_MAX_STEPS} pages and redirects.")


def _without_query(url: str) -> str:
    return url.partition("?")[0]


def _checked(url: str) -> str:
    """Return an address on this machine; raise SignInError for any other one."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not is_loopback(parts.hostname or ""):
        place = one_line(f"{parts.scheme}://{parts.netloc}")
        raise SignInError(
            f"The sign-in leads to {place}, and allow_sign_in visits this machine only. Run the server with "
            "--sign-in-as, so that no identity provider is asked."
        )
    return url
