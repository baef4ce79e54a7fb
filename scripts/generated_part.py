"""The part of a page of docs that a script writes, between two comments with its name."""

from __future__ import annotations


def with_part(page: str, name: str, part: str, *, writer: str = "make reference") -> str:
    """Return a page with the present contents of a part.

    Args:
        page: The text of the page, with the two comments.
        name: The name of the part in the comments.
        part: The contents.
        writer: The command that writes it, which the first comment names.
    """
    begin, end = f"<!-- {name}: begin, written by {writer} -->", f"<!-- {name}: end -->"
    head, _, remaining = page.partition(begin)
    _, _, tail = remaining.partition(end)
    return f"{head}{begin}\n\n{part.strip()}\n\n{end}{tail}"
