"""The sample with the documentation as a server: search, pages, parts and resources."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.testing import Client
from samples.docs import server
from samples.docs.pages import Library
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

QUESTIONS = tomllib.loads((REPOSITORY / "tests/docs/questions.toml").read_text(encoding="utf-8"))["questions"]


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with Client(server.mcp, revision=request.param) as connected:
        yield connected


async def passages(client: Client, **arguments: Any) -> list[dict[str, str]]:
    result = await client.call_tool("search_docs", arguments)
    assert not result.get("isError"), result
    return list(result["structuredContent"]["result"])


async def text_of(client: Client, **arguments: str) -> str:
    result = await client.call_tool("read_page", arguments)
    return str(result["content"][0]["text"])


async def test_a_search_finds_the_passage_and_says_where_it_is(client: Client) -> None:
    first, *_ = await passages(client, query="421 misdirected request", limit=3)
    assert (first["page"], first["uri"]) == ("guides/troubleshooting", "docs://guides/troubleshooting")
    assert "421" in first["heading"]
    assert first["text"] in await text_of(client, page=first["page"], heading=first["heading"])


def test_a_long_passage_is_cut_in_results_and_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "long.md").write_bytes(b"# Long\n\ncaf\xe9 " + b"word " * 5_000)
    library = Library(tmp_path)
    [passage] = library.search("word word WORD", 5)
    assert passage.text.startswith("# Long\n\ncaf\ufffd word")
    assert len(passage.text) < 3_100
    assert passage.text.endswith("(The passage goes on: call read_page with its heading.)")
    assert len(library.pages["long"].text) > 25_000


@pytest.mark.parametrize("query", ["", '"', "( * ^ -", "zzyzx"])
async def test_a_search_without_a_word_of_the_pages_is_an_error_for_the_model(client: Client, query: str) -> None:
    result = await client.call_tool("search_docs", {"query": query})
    assert (result["isError"], result["content"][0]["text"]) == (True, "No page has one of these words. Try others.")


async def test_a_page_is_read_as_a_whole_or_by_a_heading_with_all_below_it(client: Client) -> None:
    page = await text_of(client, page="guides/tools")
    assert page.startswith("# Tools\n")
    arguments = await text_of(client, page="guides/tools.md", heading="Arguments")
    assert arguments.startswith("## Arguments\n")
    assert "### Descriptions" in arguments
    assert "\n## Results" not in arguments


async def test_a_long_page_ends_with_its_headings(client: Client) -> None:
    page = await text_of(client, page="docs://guides/security")
    assert len(page) < 2 * server.MAX_TEXT
    assert "(The page goes on. Read the rest with heading=, which is one of: Security;" in page


async def test_what_does_not_exist_is_an_error_with_what_does(client: Client) -> None:
    assert await text_of(client, page="guide/tool") == "There is no such page. Did you mean guides/tools?"
    assert (await text_of(client, page="tutorial/index", heading="Nothing")).startswith("The page has no such heading.")
    assert await text_of(client, page="/etc/passwd") == "There is no such page. Call search_docs."


async def test_pages_are_resources_that_link_to_each_other(client: Client) -> None:
    listed = {resource["uri"]: resource for resource in await client.list_resources()}
    assert listed["docs://guides/tools"]["title"] == "Tools"
    contents = await client.read_resource("docs://guides/tools")
    assert contents["contents"][0]["mimeType"] == "text/markdown"
    assert "](docs://guides/existing)" in contents["contents"][0]["text"]
    for uri in ("docs://tutorial/first-server", "docs://reference/api/funcmcp"):
        assert uri in listed
        assert (await client.read_resource(uri))["contents"][0]["text"].startswith("# ")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_an_agent_finds_the_answers_to_the_questions_of_users() -> None:
    library = Library(server.FOLDER)

    def is_answered(question: dict[str, Any]) -> bool:
        pages = {passage.page: library.pages[passage.page].text for passage in library.search(question["search"], 5)}
        texts = [" ".join(text.casefold().split()) for text in pages.values()]
        wanted = [part.casefold().split("|") for part in question["answer"]]
        return any(all(any(choice in text for choice in choices) for choices in wanted) for text in texts)

    missing = [question["search"] for question in QUESTIONS if not is_answered(question)]
    assert len(missing) <= 5, missing


def test_headings_in_blocks_of_code_are_text(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("intro\n\n# One\n\n```sh\n# not a heading\n```\n\n## Two\n\n[gone](gone.md)\n")
    page = Library(tmp_path).pages["page"]
    assert [part.heading for part in page.parts] == ["", "One", "Two"]
    assert "# not a heading" in page.parts[1].text
    assert page.below("ONE") == "# One\n\n```sh\n# not a heading\n```\n\n## Two\n\n[gone](gone.md)\n"


def test_an_empty_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCS_FOLDER", str(tmp_path))
    server.library.cache_clear()
    with pytest.raises(FileNotFoundError, match="Set DOCS_FOLDER"):
        server.library()
    server.library.cache_clear()
