"""The reports of users in docs/development/field.jsonl, and the page about them."""

import pytest

from scripts.field_reports import PAGE, page, records, reports_of

SUBJECTS = [record for record in records() if "reports" in record]
VERDICTS = ("right", "half", "wrong", "mended", "no:")


def test_the_page_has_the_table_of_the_data() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_each_report_has_a_subject_and_verdicts() -> None:
    subjects = {record["subject"] for record in records() if "about" in record}
    for record in records():
        assert record["subject"] in subjects
        if "number" in record:
            assert "need" in record or "outcome" in record, record
            assert record.get("first", record["now"]).startswith(VERDICTS), record
            assert record["now"].startswith(VERDICTS), record


@pytest.mark.parametrize("subject", SUBJECTS, ids=[record["subject"] for record in SUBJECTS])
def test_the_counts_of_a_subject_are_those_of_its_reports(subject: dict[str, object]) -> None:
    reports = reports_of(str(subject["subject"]))
    assert [report["number"] for report in reports] == list(range(1, len(reports) + 1))
    assert len(reports) == subject["reports"]
    assert sum(report["now"].startswith(("right", "mended")) for report in reports) == subject["right_now"]
    if all("first" in report for report in reports):
        assert sum(report["first"].startswith("right") for report in reports) == subject["right_at_first"]
