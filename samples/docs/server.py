"""Documentation as an MCP server: an agent searches the pages, reads what it needs, and cites it.

Serve it with ``funcmcp run samples/docs/server.py``. It has the documentation of funcmcp, or the Markdown files in the
folder that ``DOCS_FOLDER`` names.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from funcmcp import MCPServer, ResourceNotFound, ToolError, content

from .pages import SCHEME, Library, Page, Passage

FOLDER = Path(__file__).parents[2] / "docs"
MAX_TEXT = 20_000
"""Characters of a page in one result: about 5,000 tokens."""

mcp = MCPServer(
    "docs",
    version="1.0.0",
    instructions=(
        "Answer questions about the documented software from its pages. Call search_docs first, with the words that a "
        "reader would type. If a passage is not enough, call read_page. Name the page that you quote."
    ),
)


@cache
def library() -> Library:
    """Read the pages, once in a process."""
    folder = Path(os.environ.get("DOCS_FOLDER", FOLDER))
    pages = Library(folder)
    if not pages.pages:
        raise FileNotFoundError(f"There are no Markdown files in {folder}. Set DOCS_FOLDER to a folder that has some.")
    return pages


@mcp.add_lifespan
async def read_pages() -> AsyncIterator[None]:
    """Read the pages before the server accepts calls, so that a wrong folder is an error at the start."""
    library()
    yield


@mcp.tool(read_only=True, open_world=False)
async def search_docs(
    query: Annotated[str, Field(description="Words to look for, such as the text of an error", max_length=300)],
    limit: Annotated[int, Field(description="The most passages to return", ge=1, le=20)] = 5,
) -> list[Passage]:
    """Find passages of the documentation, the best match first."""
    passages = library().search(query, limit)
    if not passages:
        raise ToolError("No page has one of these words. Try others.")
    return passages


@mcp.tool(read_only=True, open_world=False)
async def read_page(
    page: Annotated[str, Field(description="Name of the page, such as guides/tools", max_length=300)],
    heading: Annotated[str | None, Field(description="Read only what is below this heading", max_length=300)] = None,
) -> str:
    """Read a page of the documentation, or one part of it, as Markdown."""
    chosen = library().pages.get(page.removeprefix(f"{SCHEME}://").removesuffix(".md"))
    if chosen is None:
        similar = library().similar(page)
        raise ToolError(f"There is no such page. {f'Did you mean {similar}?' if similar else 'Call search_docs.'}")
    text = chosen.text if heading is None else chosen.below(heading)
    if text is None:
        raise ToolError(f"The page has no such heading. It has: {headings(chosen)}.")
    if len(text) <= MAX_TEXT:
        return text
    beginning = text[: text.rfind("\n\n", 0, MAX_TEXT)]
    return f"{beginning}\n\n(The page goes on. Read the rest with heading=, which is one of: {headings(chosen)}.)"


def headings(page: Page) -> str:
    """Return the headings of a page."""
    return "; ".join(part.heading for part in page.parts)


def page_names(written: str, _: dict[str, str]) -> list[str]:
    """Complete the name of a page."""
    return [name for name in library().pages if written in name]


@mcp.resource("docs://{page*}", mime_type="text/markdown", completions={"page": page_names})
async def documentation(page: str) -> str:
    """A page of the documentation as Markdown."""
    chosen = library().pages.get(page)
    if chosen is None:
        raise ResourceNotFound(f"{SCHEME}://{page}")
    return chosen.text


@mcp.resource_lister(SCHEME)
async def pages() -> list[content.ResourceInfo]:
    """All pages."""
    return [
        content.ResourceInfo(page.uri, page.name, title=page.title, mime_type="text/markdown")
        for page in library().pages.values()
    ]


if __name__ == "__main__":
    mcp.run()
