"""scripts/release.py writes the version, and gives the unreleased changes a section of the changelog."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from funcmcp import __version__
from scripts.release import (
    CHANGELOG,
    VERSIONED,
    ReleaseError,
    entries_without_part,
    prepare,
    problems_of,
    released,
    set_version,
    version_of,
)

ROOT = Path(__file__).parents[2]
HEAD = "# Changelog\n\n"
ENTRIES = "\n### Upgrade\n\n- Do this.\n\n### Added\n\n- One.\n\n### Fixed\n\n#### Tools\n\n- Two.\n"
LAST = "\n## [0.1.0] - 2026-11-28\n\n- First.\n"
LINKS = "\n[Unreleased]: https://example.com/compare/abc...main\n"
TEXT = f"{HEAD}## [Unreleased]\n{ENTRIES}{LAST}{LINKS}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a folder with the files that a release changes."""
    for path in (*VERSIONED, CHANGELOG):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


def test_all_files_have_the_version_of_the_package() -> None:
    assert version_of() == __version__


def test_no_other_file_of_the_distributions_has_the_version(checkout: Path) -> None:
    set_version("7.8.9", checkout)
    assert version_of(checkout) == "7.8.9"
    for path in VERSIONED:
        assert not re.search(rf"(=|==) ?\"?{re.escape(__version__)}\"", (checkout / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(VERSIONED, key=str), ids=str)
def test_a_file_with_another_version_is_named(checkout: Path, path: Path) -> None:
    text = (checkout / path).read_text(encoding="utf-8")
    (checkout / path).write_text(text.replace(f'"{__version__}"', '"7.8.9"', 1), encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"\.(py|toml)\.$"):
        version_of(checkout)


def test_the_unreleased_changes_become_the_section_of_the_version() -> None:
    assert released(TEXT, "0.2.0", "2026-12-01") == (
        f"{HEAD}## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n{ENTRIES}{LAST}"
        "\n[Unreleased]: https://example.com/compare/v0.2.0...main\n"
        "[0.2.0]: https://example.com/compare/abc...v0.2.0\n"
    )


def test_a_release_needs_changes_that_begin_with_upgrade() -> None:
    for text in (TEXT.replace(ENTRIES, ""), TEXT.replace("\n### Upgrade\n\n- Do this.\n", "")):
        with pytest.raises(ReleaseError, match="section Upgrade"):
            released(text, "0.2.0", "2026-12-01")


def test_an_entry_above_the_parts_of_its_section_is_moved_before_a_release() -> None:
    text = TEXT.replace("#### Tools", "- Three.\n\n#### Tools")
    assert problems_of(text) == []
    assert entries_without_part(text) == ["Three."]
    with pytest.raises(ReleaseError, match=r"Move this entry into a part of its section: Three\."):
        released(text, "0.2.0", "2026-12-01")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("- One.", "- One.\n- One.", "Write this entry once: One."),
        ("- One.", "- One", "End this entry with a full stop: One"),
        ("### Added", "### Fixed", "The sections are Upgrade, Fixed, Fixed."),
        ("- One.", f"- {'One ' * 20}.\n- Two.\n\n#### B\n\n- {'One ' * 20}.", "Two entries have this line: "),
    ],
    ids=["twice", "full-stop", "sections", "line"],
)
def test_changes_that_are_not_in_order_are_named(before: str, after: str, problem: str) -> None:
    text = TEXT.replace(before, after)
    assert any(line.startswith(problem) for line in problems_of(text))
    with pytest.raises(ReleaseError, match=re.escape(problem)):
        released(text, "0.2.0", "2026-12-01")


@pytest.mark.parametrize("version", ["0.0.9", __version__, "1.0", "1.0.0-beta", "one"])
def test_a_version_is_a_later_one_in_its_normal_form(checkout: Path, version: str) -> None:
    with pytest.raises(ReleaseError, match="is not a version after"):
        prepare(version, checkout)
    assert version_of(checkout) == __version__
