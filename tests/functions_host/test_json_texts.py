"""JSON from functions, workers and callers."""

from __future__ import annotations

import pytest

from funcmcp_host.json_texts import MAX_DEPTH, loads


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 990, 100_000])
@pytest.mark.parametrize("kind", ["text", "bytes"])
def test_a_text_that_is_nested_too_deep_is_a_value_error(depth: int, kind: str) -> None:
    text = '{"a":' * depth + "1" + "}" * depth
    with pytest.raises(ValueError, match="nested more than 256 levels deep"):
        loads(text if kind == "text" else text.encode())


def test_other_texts_are_read_as_the_standard_library_does() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    value = loads(text)
    for _ in range(MAX_DEPTH - 1):
        [value] = value
    assert value == []
    assert loads(b'{"a": [1, NaN]}', parse_constant=str) == {"a": [1, "NaN"]}
    assert loads('"' + "[" * 1000 + '"') == "[" * 1000
    assert loads(f"[{'[],' * 1000}[]]") == [[]] * 1001
    with pytest.raises(ValueError, match="Expecting value"):
        loads("")
