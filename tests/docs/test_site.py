"""The documentation site builds without warnings, and its pages need nothing from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from starlette.staticfiles import StaticFiles

from scripts.documentation_site import passages
from tests.page.browser import Browser, running_browser, serving
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("Sphinx builds the whole site.")

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".servers" / "docs" / "bin" / "python"
LOADING = {
    "img": "src",
    "script": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "use": "href",
}
"""Elements for which a browser loads a resource, and the attribute with its address."""


@dataclass
class Page:
    """A page of the built site.

    Attributes:
        links: Addresses in `href` of its links.
        loaded: Addresses that a browser loads with the page.
        ids: Anchors.
        navigation: Addresses of the links in the navigation.
    """

    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    navigation: list[str] = field(default_factory=list)


class PageReader(HTMLParser):
    """Reads one HTML document into `page`."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._depth_of_navigation = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if "id" in attributes:
            self.page.ids.add(attributes["id"])
        if tag == "a" and "href" in attributes:
            self.page.links.append(attributes["href"])
            if self._depth_of_navigation:
                self.page.navigation.append(attributes["href"])
        is_loaded = tag != "link" or attributes.get("rel") not in ("index", "search", "next", "prev", "canonical")
        if is_loaded and LOADING.get(tag, "") in attributes:
            self.page.loaded.append(attributes[LOADING[tag]])
        if tag == "div" and (self._depth_of_navigation or "sidebar-tree" in attributes.get("class", "").split()):
            self._depth_of_navigation += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._depth_of_navigation:
            self._depth_of_navigation -= 1


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site. Documents that `make docs` has read are not read again, and all pages are written."""
    python = require("Sphinx (scripts/setup-docs.sh)", str(PYTHON) if PYTHON.exists() else None)
    folder = tmp_path_factory.mktemp("site")
    if (ROOT / ".site" / "doctrees").exists():
        shutil.copytree(ROOT / ".site" / "doctrees", folder / "doctrees")
    options = ["-W", "--keep-going", "--quiet", "-d", f"{folder}/doctrees"]
    command = [str(python), "-m", "sphinx", *options, "docs", f"{folder}/html"]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert (build.returncode, build.stderr) == (0, "")
    return Path(folder / "html")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Return all pages by their paths, without samples that are HTML files."""
    pages = {}
    for path in sorted(set(site.rglob("*.html")) - set((site / "_downloads").rglob("*.html"))):
        reader = PageReader()
        reader.feed(path.read_text(encoding="utf-8"))
        pages[path] = reader.page
    return pages


def targets(path: Path, addresses: list[str]) -> Iterator[tuple[str, Path, str]]:
    """Return each address inside the site with its file and its anchor."""
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        yield address, (path.parent / unquote(parts.path)).resolve() if parts.path else path, unquote(parts.fragment)


def test_there_is_a_page_for_each_document(site: Path, pages: dict[Path, Page]) -> None:
    documents = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert documents <= {path.relative_to(site) for path in pages}


def test_links_lead_to_files_and_anchors_of_the_site(site: Path, pages: dict[Path, Page]) -> None:
    checked = 0
    broken = []
    for path, page in pages.items():
        for address, file, anchor in targets(path, page.links):
            checked += 1
            if not file.is_file() or (anchor and anchor not in pages[file].ids):
                broken.append(f"{path.relative_to(site)}: {address}")
    assert broken == []
    assert checked > 1000


def test_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert page.loaded, path
        for address in page.loaded:
            parts = urlsplit(address)
            assert (parts.scheme, parts.netloc) == ("", ""), f"{path.relative_to(site)} loads {address}"
            file = path.parent / unquote(parts.path) if parts.path else path
            assert file.is_file(), f"{path.relative_to(site)} loads {address}"


def test_styles_and_pictures_load_nothing_from_elsewhere(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".css", ".svg")]
    assert len(files) > 1
    for path in files:
        text = path.read_text(encoding="utf-8")
        for start in ("@import", "url(http", "url('http", 'url("http', "url(//", 'href="http'):
            assert start not in text, path.name


def test_each_page_is_reachable_from_the_navigation_of_the_first_page(site: Path, pages: dict[Path, Page]) -> None:
    first = site / "index.html"
    reached = {file for _, file, _ in targets(first, pages[first].navigation)}
    generated = {site / "genindex.html", site / "search.html"}
    assert pages.keys() - reached - generated <= {first}


def test_the_search_page_has_the_passages_of_all_pages(site: Path) -> None:
    page = (site / "search.html").read_text(encoding="utf-8")
    assert "_static/search.js" in page
    assert "searchtools.js" not in page
    script = (site / "_static" / "passages.js").read_text(encoding="utf-8")
    passages = json.loads(script.removeprefix("const PASSAGES = ").removesuffix(";\n"))
    documents = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page, *_ in passages} == documents


def test_passages_lead_to_anchors_of_the_site(site: Path, pages: dict[Path, Page]) -> None:
    missing = [
        f"{page}#{anchor}" for page, _, _, anchor, _ in passages() if anchor not in pages[site / f"{page}.html"].ids
    ]
    assert [passage for passage in missing if not passage.endswith("#")] == []


def test_each_page_is_there_as_markdown_and_in_llms_txt(site: Path) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\(([\w/.-]+\.md)\)", text))
    documents = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed == {name for name in documents if not name.endswith("index.md")}
    for name in documents:
        assert (site / name).read_bytes() == (ROOT / "docs" / name).read_bytes()


SEARCH = """
await page.goto(`${args.url}/search.html?q=${encodeURIComponent(args.query)}`);
const first = page.locator('#results li').first();
const found = {text: await first.innerText(), marked: await first.locator('mark').allInnerTexts()};
await first.locator('a').click();
await page.waitForLoadState();
return {...found, url: page.url(), heading: await page.locator('h1').first().innerText()};
"""


ACCESSIBILITY = """
const problems = [];
for (const name of args.pages) {
  await page.goto(`${args.url}/${name}`);
  problems.push(...await violations(page));
}
return problems;
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_axe_finds_nothing_to_complain_about(site: Path, browser: Browser, scheme: str, width: int) -> None:
    names = ["index.html", "explanation/comparison.html", "reference/limits.html"]
    with serving(StaticFiles(directory=site), "") as url:
        viewport = {"width": width, "height": 900}
        found = browser.play(ACCESSIBILITY, {"url": url, "pages": names}, colorScheme=scheme, viewport=viewport)
    assert found == []


def test_the_search_shows_the_passage_and_leads_to_it(site: Path, browser: Browser) -> None:
    with serving(StaticFiles(directory=site), "") as url:
        found = browser.play(SEARCH, {"url": url, "query": "session not found"})
    assert found["text"].startswith('Troubleshooting: "Session not found"')
    assert "session" in found["marked"]
    assert found["url"].endswith("guides/troubleshooting.html#session-not-found")
