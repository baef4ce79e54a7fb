"""Notes about further pages, by the conventions of well-known APIs."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._authoring.openapi.pages import next_page_note

URL = "https://api.example/items"


@pytest.mark.parametrize(
    ("value", "link", "parameters", "changes"),
    [
        ([1], f'<{URL}?page=3&per_page=5>; rel="next"', ["page", "per_page"], "page=3"),  # GitHub
        ([1], f'<{URL}?page=1>; rel="prev", <{URL}?page=3>; rel=next', ["page"], "page=3"),
        ({"has_more": True, "data": [{"id": "a"}, {"id": "b"}]}, "", ["starting_after", "limit"], 'starting_after="b"'),
        ({"response_metadata": {"next_cursor": "abc="}}, "", ["cursor"], 'cursor="abc="'),  # Slack
        ({"startAt": 50, "total": 200, "issues": [1, 2]}, "", ["startAt"], "startAt=52"),  # Jira
        ({"startAt": 0, "total": 200, "issues": [1, 2]}, "", ["startAt"], "startAt=2"),
        ({"metadata": {"continue": "xyz"}}, "", ["continue"], 'continue="xyz"'),  # Kubernetes
        ({"nextPageToken": "t"}, "", ["pageToken"], 'pageToken="t"'),  # Google
        ({"@odata.nextLink": f"{URL}?$skip=20&$top=10"}, "", ["$skip", "$top"], "$skip=20, $top=10"),  # Microsoft
        ({"next_page_uri": "/items.json?Page=2&PageToken=x"}, "", ["Page", "PageToken"], 'Page=2, PageToken="x"'),
        ({"links": {"next": f"{URL}?cursor=c"}}, "", ["cursor"], 'cursor="c"'),
        ({"_links": {"next": {"href": "/items?offset=20"}}}, "", ["offset"], "offset=20"),
        ({"paging": {"cursors": {"after": "q"}}}, "", ["after"], 'after="q"'),
    ],
)
def test_a_note_names_the_argument_of_the_next_page(value: Any, link: str, parameters: list[str], changes: str) -> None:
    arguments = {"per_page": 5}
    note = next_page_note(value, link, "list", {name: name for name in parameters}, arguments)
    assert note == f"There are more results. Call list again with {changes} and the other arguments unchanged."


@pytest.mark.parametrize(
    ("value", "link"),
    [
        ([1], ""),
        ([1], '<https://[/?page=2>; rel="next"'),
        ([1], f'<{URL}?page=2>; rel="prev"'),
        ({"next": None, "has_more": False, "data": [{"id": "a"}]}, ""),
        ({"next_cursor": ""}, ""),
        ({"next_cursor": True}, ""),
        ({"has_more": True, "data": []}, ""),
        ({"has_more": True, "data": [{"id": None}]}, ""),
        ({"startAt": 198, "total": 200, "issues": [1, 2]}, ""),
        ({"startAt": 0, "total": 200, "issues": [1], "others": [2]}, ""),
        ({"next_cursor": "x" * 3000}, ""),
        ({"next": f"{URL}?other=2"}, ""),
    ],
)
def test_a_response_that_names_no_next_page_has_no_note(value: Any, link: str) -> None:
    parameters = {name: name for name in ("page", "cursor", "starting_after", "startAt")}
    assert next_page_note(value, link, "list", parameters, {}) is None


def test_a_cursor_without_an_argument_has_no_note() -> None:
    assert next_page_note({"next_cursor": "a"}, "", "list", {"limit": "limit"}, {}) is None
    assert next_page_note({"has_more": True, "data": [{"id": 1}]}, "", "list", {}, {}) is None
