"""Further pages of results: a sentence that says with which argument the next one is called.

Pages are never fetched unasked: each is a call of its own, which the model decides about. Where a response says that
there is another page differs from API to API. These conventions are known: the header Link; members that are the URL of
the next page, or its cursor; and a first item and a number of items beside the total.

Source: RFC 8288 (Web Linking); the documents of GitHub, Stripe, Slack, Jira, Kubernetes, Twilio, Google and Microsoft.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from funcmcp._protocol.codec import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LINK = re.compile(r'<([^<>]*)>\s*;[^,<]*?\brel="?next"?', re.IGNORECASE)
_URLS = frozenset(
    {"next", "nextlink", "next_link", "@odata.nextlink", "next_url", "nexturl", "next_uri", "next_page_uri", "href"}
    | {"next_page_url", "nextpage", "next_page"}
)
_CURSORS = frozenset(
    {"next_cursor", "nextcursor", "next_page_token", "nextpagetoken", "next_token", "nexttoken", "cursor", "continue"}
    | {"marker", "next_marker", "nextmarker", "after", "next", "next_page", "nextpage", "bookmark", "next_offset"}
)
_PARENTS = ("links", "_links", "meta", "metadata", "response_metadata", "pagination", "paging", "page_info", "pageInfo")
_INNER = ("next", "cursors")
_MAX_DEPTH = 2
"""Levels of members inside of each other that are looked through."""

_CURSOR_PARAMETERS = (
    *("cursor", "page_token", "pageToken", "next_token", "nextToken", "continue", "starting_after", "after", "marker"),
    *("page[cursor]", "page[after]", "bookmark", "next_page_token", "nextPageToken", "page", "offset"),
)
_MORE = ("has_more", "hasMore", "has_next_page", "hasNextPage", "more")
_STARTS = ("startAt", "offset", "skip", "start")
_TOTALS = ("total", "total_count", "totalCount", "count")
_MAX_VALUE_LENGTH = 2000
_MAX_DIGITS = 9


def next_page_note(
    value: Any, link: str, tool: str, parameters: Mapping[str, str], arguments: Mapping[str, Any]
) -> str | None:
    """Return a sentence about the next page; None if the response does not say that there is one.

    Args:
        value: The JSON value of the response.
        link: The header Link, or "".
        tool: The tool's name.
        parameters: The tool's arguments in the query, by the names of their parameters.
        arguments: The arguments of the call.
    """
    changes = _changes_of(value, link, parameters, arguments)
    if not changes:
        return None
    written = ", ".join(f"{name}={encode(text).decode()}" for name, text in changes.items())
    if len(written) > _MAX_VALUE_LENGTH:
        return None
    return f"There are more results. Call {tool} again with {written} and the other arguments unchanged."


def _changes_of(
    value: Any, link: str, parameters: Mapping[str, str], arguments: Mapping[str, Any]
) -> dict[str, str | int]:
    """Return the arguments of the next page that differ from those of the call."""
    match = _LINK.search(link)
    if match is not None:
        return _of_url(match[1], parameters, arguments)
    if not isinstance(value, dict):
        return {}
    for name, member in _candidates(value):
        if not isinstance(member, str | int) or isinstance(member, bool) or member in ("", 0):
            continue
        is_url = isinstance(member, str) and ("?" in member or "://" in member)
        if is_url and name.lower() in _URLS:
            changes = _of_url(str(member), parameters, arguments)
        elif name.lower() in _CURSORS and not is_url:
            changes = _of_cursor(member, parameters)
        else:
            continue
        if changes:
            return changes
    return _of_last_item(value, parameters) or _of_total(value, parameters)


def _candidates(value: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the members that may be a next page, also those of members that usually contain them."""
    yield from value.items()
    for name in (*_PARENTS, *_INNER):
        member = value.get(name)
        if isinstance(member, dict) and depth < _MAX_DEPTH:
            yield from _candidates(member, depth + 1)


def _of_url(url: str, parameters: Mapping[str, str], arguments: Mapping[str, Any]) -> dict[str, str | int]:
    try:
        query = parse_qsl(urlsplit(url).query)
    except ValueError:
        return {}
    changes: dict[str, str | int] = {}
    for name, text in query:
        argument = parameters.get(name)
        if (
            argument is not None
            and str(arguments.get(argument)) != text
            and not isinstance(arguments.get(argument), list | dict | bool)
        ):
            changes[argument] = int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS else text
    return changes


def _of_cursor(cursor: str | int, parameters: Mapping[str, str]) -> dict[str, str | int]:
    for name in _CURSOR_PARAMETERS:
        if name in parameters:
            return {parameters[name]: cursor}
    return {}


def _of_last_item(value: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, str | int]:
    """Return the next page of an API that continues after the id of the last item."""
    items = value.get("data") or value.get("items")
    has_more = any(value.get(name) is True for name in _MORE)
    if not has_more or not isinstance(items, list) or not items or not isinstance(items[-1], dict):
        return {}
    last = items[-1].get("id")
    for name in ("starting_after", "after", "after_id"):
        if name in parameters and isinstance(last, str | int):
            return {parameters[name]: last}
    return {}


def _of_total(value: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, str | int]:
    """Return the next page of an API that counts items: the first one beside a total."""
    total = next((value[name] for name in _TOTALS if isinstance(value.get(name), int)), None)
    lists = [member for member in value.values() if isinstance(member, list)]
    if total is None or len(lists) != 1:
        return {}
    for name in _STARTS:
        start = value.get(name)
        if isinstance(start, int) and name in parameters and 0 < start + len(lists[0]) < total:
            return {parameters[name]: start + len(lists[0])}
    return {}
