"""A person with a browser, without a person. It loads little, because tests start it as the browser of programs."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx2

from tests.patience import PATIENCE

BACK = "http://127.0.0.1:1/back"
"""Where a client's users return to; the browser stops there."""

_FORM = re.compile(r'<form[^>]* action="([^"]*)"', re.DOTALL)
_INPUT = re.compile(r"<input[^>]*>")
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


async def browse(url: str, *, user: str = "ada", decision: str = "allow", back: str = BACK) -> dict[str, str]:
    """Do as a person with a browser: follow redirects and fill in forms, until the client is reached."""
    async with httpx2.AsyncClient(follow_redirects=False, timeout=PATIENCE) as browser:
        answer = await browser.get(url)
        for _ in range(20):
            if answer.is_redirect:
                location = str(answer.url.join(answer.headers["location"]))
                if location.startswith(back):
                    return dict(parse_qsl(urlsplit(location).query))
                answer = await browser.get(location)
                continue
            form = _FORM.search(answer.text)
            if form is None:
                raise AssertionError(f"{answer.status_code} {answer.text}")
            fields = filled_in(answer.text, user)
            if 'name="decision"' in answer.text:
                fields["decision"] = decision
            headers = {"origin": f"{answer.url.scheme}://{answer.url.netloc.decode()}"}
            answer = await browser.post(answer.url.join(html.unescape(form[1])), data=fields, headers=headers)
    raise AssertionError("The sign-in has no end.")


async def visit(address: str, user: str) -> None:
    """Sign in, and open the page to which the user returns."""
    back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
    query = await browse(address, user=user, back=back)
    async with httpx2.AsyncClient(timeout=PATIENCE) as browser:
        assert (await browser.get(f"{back}?{urlencode(query)}")).status_code == 200


def filled_in(page: str, user: str) -> dict[str, str]:
    """Return the fields of the form in a page, with the user in those without a value."""
    fields = {}
    for tag in _INPUT.findall(page):
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(tag)}
        if "name" in attributes:
            fields[attributes["name"]] = attributes.get("value", user)
    return fields
