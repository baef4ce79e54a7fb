"""What a function of Azure's may return is read from its code."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst")

import libcst as cst

from funcmcp_cli.migrate.azure_returns import Returned, ReturnReader

FILE = """
import json

GREETING = "Hello."
MESSAGES = json.dumps({"messages": []})
DOCUMENT = {"theme": "dark"}


def build(topic):
    return json.dumps({"messages": [topic]})


def plain(topic):
    return f"About {topic}"


def recursive(topic):
    return recursive(topic)


def subject(context):
"""

CASES = [
    ('return "Hello."', {Returned.TEXT}),
    ('return "Hello, " "you."', {Returned.TEXT}),
    ('return f"Hello {context}"', {Returned.TEXT}),
    ('return f"{context}"', {Returned.UNCLEAR}),
    ('return f\'{{"messages": {context}}}\'', {Returned.UNCLEAR}),
    ('return "[1, 2]"', {Returned.TEXT}),
    ('return \'{"theme": "dark"}\'', {Returned.JSON}),
    ('return \'{"Messages": []}\'', {Returned.RESULT}),
    ('return \'{"content": "x"}\'', {Returned.RESULT}),
    ('return "Hello " + context', {Returned.TEXT}),
    ('return context + "."', {Returned.UNCLEAR}),
    ('return "Hello %s" % context', {Returned.TEXT}),
    ('return "Hello {}".format(context)', {Returned.TEXT}),
    ('return "{}".format(context)', {Returned.UNCLEAR}),
    ('return \'{{"messages": [{}]}}\'.format(context)', {Returned.UNCLEAR}),
    ('return "a" if context else None', {Returned.TEXT, Returned.NONE}),
    ('return context or "a"', {Returned.UNCLEAR, Returned.TEXT}),
    ("return GREETING", {Returned.TEXT}),
    ("return MESSAGES", {Returned.RESULT}),
    ("return json.dumps(DOCUMENT)", {Returned.JSON}),
    ("return json.dumps(context)", {Returned.RESULT}),
    ("return json.dumps([context])", {Returned.TEXT}),
    ("return json.dumps({**context})", {Returned.RESULT}),
    ("return json.dumps({context: 1})", {Returned.RESULT}),
    ("return build(context)", {Returned.RESULT}),
    ("return plain(context)", {Returned.TEXT}),
    ("return await plain(context)", {Returned.TEXT}),
    ("return recursive(context)", {Returned.UNCLEAR}),
    ("return result.model_dump_json()", {Returned.UNCLEAR}),
    ("return context", {Returned.UNCLEAR}),
    ("return DOCUMENT", {Returned.VALUE}),
    ("return {}", {Returned.VALUE}),
    ("return [1]", {Returned.VALUE}),
    ("return 3", {Returned.VALUE}),
    ("return True", {Returned.VALUE}),
    ('return b"abc"', {Returned.BYTES}),
    ("return", {Returned.NONE}),
    ("return None", {Returned.NONE}),
    ("pass", {Returned.NONE}),
    ("yield 1", {Returned.VALUE}),
    ('if context:\n        return "a"', {Returned.TEXT, Returned.NONE}),
    ('if context:\n        return "a"\n    else:\n        raise ValueError', {Returned.TEXT}),
    ('if context:\n        return "a"\n    elif MESSAGES:\n        return "b"', {Returned.TEXT, Returned.NONE}),
    ('try:\n        return "a"\n    except OSError:\n        return None', {Returned.TEXT, Returned.NONE}),
    ('try:\n        return "a"\n    except OSError:\n        pass', {Returned.TEXT, Returned.NONE}),
    ('try:\n        pass\n    finally:\n        return "a"', {Returned.TEXT}),
    ('with context:\n        return "a"', {Returned.TEXT}),
    ('while True:\n        if context:\n            return "a"', {Returned.TEXT}),
    ("while True:\n        break", {Returned.NONE}),
    ('for text in context:\n        return text\n    return "a"', {Returned.TEXT, Returned.UNCLEAR}),
    ('text = "a"\n    text += context\n    return text', {Returned.TEXT}),
    ('text = "a"\n    text = text + context\n    return text', {Returned.TEXT, Returned.UNCLEAR}),
    ('text = "a"\n    text *= 2\n    return text', {Returned.TEXT, Returned.UNCLEAR}),
    ('text: str = "a"\n    return text', {Returned.TEXT}),
    ("a, b = context\n    return a", {Returned.UNCLEAR}),
    ('return (text := "a")', {Returned.UNCLEAR}),
    ("with context as text:\n        return text", {Returned.UNCLEAR}),
    ("GREETING = {}\n    return GREETING", {Returned.VALUE}),
    ('def inner():\n        return None\n    return "a"', {Returned.TEXT}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_what_a_function_may_return(body: str, expected: set[Returned]) -> None:
    code = FILE.replace("def subject", "async def subject") if "await" in body else FILE
    module = cst.parse_module(f"{code}    {body}\n")
    function = cst.ensure_type(module.body[-1], cst.FunctionDef)
    assert ReturnReader(module).returned(function) == expected
