"""Bytes to values and back: RFC 8259, and no wider."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._protocol import codec
from funcmcp._protocol.codec import MAX_DEPTH, InvalidJSONError, RepeatedNameError, decode, encode, memory_of
from tests import rules

pytestmark = [
    pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON_VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
JSON_ISH = st.text(alphabet='{}[]":,0123456789.eE+-\\ \n\tntrufalsNI"abc\ud800é', max_size=24)


@settings(deadline=None)
@given(JSON_VALUES)
def test_what_is_encoded_decodes_to_the_same_value(value: Any) -> None:
    assert decode(encode(value)) == value


@settings(deadline=None)
@given(JSON_VALUES)
def test_the_standard_library_reads_what_is_encoded_as_the_same_value(value: Any) -> None:
    assert json.loads(encode(value)) == value


@settings(deadline=None)
@given(JSON_VALUES)
def test_an_encoded_value_is_one_line(value: Any) -> None:
    assert not set(encode(value)) & {0x0A, 0x0D}


@settings(deadline=None)
@given(JSON_VALUES, st.sampled_from([None, 2]), st.booleans())
def test_decode_reads_every_spelling_of_the_standard_library(value: Any, indent: int | None, ascii_only: bool) -> None:
    assert decode(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()) == value


@settings(deadline=None, max_examples=400)
@given(JSON_ISH.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=16))
def test_decode_accepts_nothing_that_the_standard_library_reads_otherwise(data: bytes) -> None:
    try:
        value = decode(data)
    except (InvalidJSONError, RepeatedNameError):
        return
    assert json.loads(data) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{'a': 1}",
        b'{"a": 1,}',
        b'{"a": 1} {}',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"-1e400",
        b'{"params":{"x":{"a":1e400,"a":2}}}',
        b"1e999",
        b"[-1e999]",
        b'{"a": 1e999}',
        b"1" * 4301,
        b"01",
        b"+1",
        b'"\\ud800"',
        b'{"\\udc00": 1}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\x01"',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"[" * 100_000,
    ],
    ids=lambda data: repr(data[:20]),
)
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidJSONError):
        decode(data)


def test_a_refusal_says_where_and_repeats_nothing_of_the_input() -> None:
    with pytest.raises(InvalidJSONError) as caught:
        decode(b'{\n "secret": hunter2}')
    assert str(caught.value).startswith("The message is not valid JSON (line 2 column ")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[" * 100 + b"]" * 100, "The JSON is nested more than 64 levels deep."),
        (b"[" * 300 + b"]" * 300, "The JSON is nested more than 64 levels deep."),
        (b"1" * 5000, "The JSON has a number with more than 4,300 digits."),
        (b'"\\ud800"', "The JSON has a \\u escape that is not a character, such as a lone surrogate."),
        (b'"\\udc00"', "The JSON has a \\u escape that is not a character, such as a lone surrogate."),
    ],
)
def test_json_beyond_a_limit_is_not_called_invalid(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidJSONError) as caught:
        decode(data)
    assert str(caught.value) == reason


def test_an_integer_of_4300_digits_is_read_exactly() -> None:
    assert decode(b"9" * 4300) == 10**4300 - 1


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_up_to_the_limit_is_read(opening: str) -> None:
    closing = {"[": "]"}.get(opening, "}")
    value = decode((opening * MAX_DEPTH + "1" + closing * MAX_DEPTH).encode())
    for _ in range(MAX_DEPTH):
        value = value[0] if isinstance(value, list) else value["a"]
    assert value == 1


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_beyond_the_limit_is_refused(opening: str) -> None:
    closing = {"[": "]"}.get(opening, "}")
    with pytest.raises(InvalidJSONError, match="levels deep"):
        decode((opening * (MAX_DEPTH + 1) + "1" + closing * (MAX_DEPTH + 1)).encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"method":"a","method":"b"}',
        '{"method":"a","method" :"b"}',
        '{"method":"a","method"\t:"b"}',
        '{"method":"a","method"\n:"b"}',
        '{"method":"a","method"\r:"b"}',
        '{"method" :"a","method" : "b"}',
        '{"method":"a","\\u006dethod":"b"}',
        '{"params":{"name":"a","name":"b"}}',
        '{"params":{"_meta":{"k":1,"k":1}}}',
        '{"params":{"_meta":{"k":1,"k" :1}}}',
        '{"params":{"arguments":{"path":"a","path":"b"}}}',
        '[{"id":1},{"id":1,"id":2}]',
    ],
)
def test_a_repeated_name_is_refused_where_the_protocol_reads(text: str) -> None:
    with pytest.raises(RepeatedNameError, match="same member name twice"):
        decode(text.encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"params":{"arguments":{"own":{"a":1,"a":2}}}}', {"params": {"arguments": {"own": {"a": 2}}}}),
        ('{"params":[{"a":1,"a":2}]}', {"params": [{"a": 2}]}),
        ('[[{"a":1,"a":2}], 1]', [[{"a": 2}], 1]),
        ('{"a" : "says \\": twice", "b": ":"}', {"a": 'says ": twice', "b": ":"}),
        ('"a\\": b"', 'a": b'),
    ],
)
def test_the_last_one_wins_inside_an_authors_own_values(text: str, value: Any) -> None:
    assert decode(text.encode()) == value


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        {"a": [-math.inf]},
        ["NaN", math.nan],
        b"\xff",
        ...,
    ],
    ids=repr,
)
def test_what_json_cannot_say_is_not_encoded(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON|serialize"):
        encode(value)


def test_an_object_that_contains_itself_is_not_encoded() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="JSON"):
        encode(value)


def test_text_that_only_looks_like_a_constant_is_encoded() -> None:
    assert encode({"NaN": "Infinity"}) == b'{"NaN":"Infinity"}'


def test_text_beyond_ascii_is_encoded_as_utf_8() -> None:
    assert encode("Grüße 🍕") == '"Grüße 🍕"'.encode()


@pytest.mark.parametrize("text", [b"[%b]", b'{"a":%b}'])
def test_json_is_nested_so_deep_and_no_deeper(text: bytes) -> None:
    nested = b"1"
    for _ in range(MAX_DEPTH):
        nested = text % nested
    assert decode(nested)
    assert decode(b"[%b]" % b",".join([b"[1]"] * (MAX_DEPTH + 1))) == [[1]] * (MAX_DEPTH + 1)
    with pytest.raises(InvalidJSONError, match="nested"):
        decode(text % nested)


VALUES = [
    (b"1", 1),
    (b"[]", 1),
    (b"{}", 1),
    (b"[1, 2]", 2),
    (b'{"a": [{}, {"b": []}]}', 6),
    (b'[",[{", "\\",[{", "\\\\", ",,,,"]', 4),
]


@rules.verifies(rules.THREAT_23)
@pytest.mark.parametrize(("data", "values"), VALUES)
def test_values_are_counted_and_texts_are_not_looked_into(data: bytes, values: int) -> None:
    padded = data + b" " * 100
    assert decode(padded, values=values) == json.loads(data)
    assert decode(padded) == json.loads(data)
    if values > 1:
        with pytest.raises(InvalidJSONError, match=f"more than {values - 1} values"):
            decode(padded, values=values - 1)


@rules.verifies(rules.THREAT_23)
@pytest.mark.parametrize("item", [b"[]", b"{}", b'""', b"1", b'{"a":1}', b"[[[]]]", b'"\\n"'])
def test_countless_values_are_refused_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch, item: bytes) -> None:
    """Without the limit, 3.7 MB of empty arrays block the event loop for a second."""
    monkeypatch.setattr(codec, "from_json", None)
    with pytest.raises(InvalidJSONError, match="values"):
        decode(b'["\\n",' + b",".join([item] * 400_000) + b"]", values=250_000)


def test_the_last_of_equal_names_wins_inside_a_value_of_the_author() -> None:
    assert decode(b'{"params":{"x":{"a":1.5,"a":2.5}}}') == {"params": {"x": {"a": 2.5}}}


def test_a_parser_error_without_a_place_has_a_fixed_sentence() -> None:
    """A later version of the parser may have other error messages, which must not be repeated."""
    assert codec._reason_for("secret") == "The message is not valid JSON."


def test_a_text_is_encoded_as_a_json_string() -> None:
    assert codec.encode_text('caf\u00e9 "a"\n') == '"caf\u00e9 \\"a\\"\\n"'.encode()
    assert codec.encode_text("a\ud800") == '"a\ufffd"'.encode()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\ud800b", '"a\ufffdb"'),
        ("\ud83d\ude00", '"\U0001f600"'),
        ({"\udfff": ["\ud800", 1, None, ("\udc00",)]}, '{"\ufffd":["\ufffd",1,null,["\ufffd"]]}'),
        ({"a": {"\ud800"}, "b": b"x"}, '{"a":["\ufffd"],"b":"x"}'),
    ],
)
def test_a_lone_surrogate_is_written_as_the_replacement_character(value: Any, text: str) -> None:
    assert encode(value).decode() == text


def test_an_object_with_a_lone_surrogate_that_contains_itself_is_not_encoded() -> None:
    value: list[Any] = ["\ud800"]
    value.append(value)
    with pytest.raises(ValueError, match="contains itself"):
        encode(value)


@pytest.mark.parametrize(
    ("text", "request_id"),
    [
        (r'{"id": 7, "method": "a", "params": {"b": "\ud800"}}', 7),
        (r'{"id": "7", "method": "a", "params": {"b": NaN}}', "7"),
        (r'{"id": 7, "method": "a", "params": {"b": 1, "b": 1}}', 7),
        (r'{"id": "\ud800", "method": "a"}', None),
        (r'{"id": 1.5, "method": "a", "b": NaN}', None),
        (r'{"id": 7, "id": 8, "method": "a"}', None),
        (r'{"id": 7, "result": NaN}', None),
        (r'[{"id": 7, "method": "a", "b": NaN}]', None),
        ("{", None),
        ('{"id": 7, "method": "a", "b": ' + "[" * 200_000, None),
    ],
)
def test_the_id_of_a_request_that_is_refused_is_found_if_it_is_certain(text: str, request_id: str | int | None) -> None:
    assert codec.request_id_in(text.encode()) == request_id


def test_no_id_is_searched_in_bytes_that_are_not_utf_8_or_have_too_many_values() -> None:
    assert codec.request_id_in(b'{"id": 7, "method": "\xff"}') is None
    assert codec.request_id_in(b'{"id": 7, "method": "a", "b": [1, 2, 3]}', 3) is None


@pytest.mark.parametrize(
    "text",
    [
        "[" + '{"":1},' * 5000 + "1]",
        "[" + "{}," * 5000 + "1]",
        "[" + "[]," * 5000 + "1]",
        "[" + "1.5," * 5000 + "1]",
        "[" + ",".join(f'"{number:04x}"' for number in range(5000)) + "]",
        "{" + ",".join(f'"{number:04x}":{number}' for number in range(5000)) + "}",
        '["' + "x" * 50_000 + '"]',
        '["' + "x" * 50_000 + '\u20ac"]',
        '["' + "x" * 50_000 + '\U0001f600"]',
        '["' + "x" * 50_000 + '\\ud83d\\ude00"]',
    ],
    ids=[
        "objects",
        "empty objects",
        "arrays",
        "numbers",
        "texts",
        "names",
        "text",
        "wider text",
        "widest text",
        "escaped widest text",
    ],
)
def test_a_value_takes_up_no_more_memory_than_is_counted(text: str) -> None:
    data = text.encode()
    tracemalloc.start()
    value = decode(data)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del value
    assert held < memory_of(data) * 1.05


def test_a_short_text_is_not_measured() -> None:
    assert memory_of(b"[" + b"1," * 510 + b"1]") == 0
