"""Bindings beside a trigger: what they read and write, and which ones make a function unusable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_host.bindings import BindingError, ExtraBinding
from funcmcp_host.blobs import BlobError
from funcmcp_host.expressions import ExpressionError
from funcmcp_host.extras import Extras, Storage, plan_extras
from funcmcp_host.invocation import Trigger
from funcmcp_host.workers.worker import NULL, Value
from tests.functions_host.durable.orchestrations import file_size_limit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def trigger() -> Trigger:
    trigger = Trigger({"name": "t"}, "mcptoolcontext", "context")
    trigger.add_group("mcptoolargs", {"name": "n", "count": "3"})
    trigger.add_group("mcppromptargs", {"code": "x"})
    return trigger


def binding(kind: str, *, out: bool = False, parameter: str = "b", **values: Any) -> ExtraBinding:
    return ExtraBinding(parameter, kind.lower(), out, {"type": kind, **{key.lower(): v for key, v in values.items()}})


def plan(folder: Path, *bindings: ExtraBinding, **settings: str) -> Extras:
    return plan_extras(bindings, Storage(folder, settings))


async def test_arguments_are_texts(tmp_path: Path, trigger: Trigger) -> None:
    extras = plan(
        tmp_path,
        binding("mcpToolProperty", parameter="a", propertyName="count"),
        binding("mcpToolProperty", parameter="b", propertyName="missing"),
        binding("mcpPromptArgument", parameter="c", argumentName="code"),
        binding("mcpPromptArgument", parameter="d", argumentName="missing"),
    )
    assert await extras.read(trigger) == {
        "a": Value("string", "3"),
        "b": Value("string", ""),
        "c": Value("string", "x"),
        "d": NULL,
    }


async def test_a_blob_is_written_and_read_by_its_connection_and_path(tmp_path: Path, trigger: Trigger) -> None:
    blob: dict[str, Any] = {"path": "%BOX%/{mcptoolargs.name}.txt", "connection": "Files"}
    writing = plan(tmp_path, binding("blob", out=True, **blob), BOX="box")
    await writing.write(trigger, {"b": Value("string", "ä"), "other": Value("string", "dropped")})
    assert (tmp_path / "Files" / "box" / "n.txt").read_text(encoding="utf-8") == "ä"
    reading = plan(tmp_path, binding("blob", **blob), binding("blob", parameter="none", path="x/y"), BOX="box")
    assert await reading.read(trigger) == {"b": Value("string", "ä"), "none": NULL}
    binary = plan(tmp_path, binding("blob", dataType="binary", **blob), BOX="box")
    assert await binary.read(trigger) == {"b": Value("bytes", "ä".encode())}


async def test_bytes_that_are_not_text_stay_bytes(tmp_path: Path, trigger: Trigger) -> None:
    await plan(tmp_path, binding("blob", out=True, path="x/y")).write(trigger, {"b": Value("bytes", b"\xff\x00")})
    assert await plan(tmp_path, binding("blob", path="x/y")).read(trigger) == {"b": Value("bytes", b"\xff\x00")}
    assert (tmp_path / "AzureWebJobsStorage" / "x" / "y").exists()


async def test_nothing_is_written_where_the_function_set_nothing(tmp_path: Path, trigger: Trigger) -> None:
    await plan(tmp_path, binding("blob", out=True, path="x/y")).write(trigger, {"b": NULL})
    assert not (tmp_path / "AzureWebJobsStorage").exists()


async def test_messages_of_a_queue_are_lines_of_json(tmp_path: Path, trigger: Trigger) -> None:
    extras = plan(tmp_path, binding("queue", out=True, queueName="jobs", connection="Files"))
    for value in (
        Value("string", "a\nb"),
        Value("bytes", b"c"),
        Value("json", '["d", {"e": 1}]'),
        Value("json", '{"f": 1}'),
    ):
        await extras.write(trigger, {"b": value})
    lines = (tmp_path / "Files" / "queues" / "jobs.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["a\nb", "c", "d", {"e": 1}, {"f": 1}]


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (binding("cosmosDB"), "input binding cosmosDB is not supported by funcmcp host"),
        (binding("table", out=True), "output binding table is not supported by funcmcp host"),
        (binding("durableClient"), "input binding durableClient is not supported by funcmcp host"),
        (binding("queue"), "input binding queue is not supported by funcmcp host"),
        (binding("mcpToolProperty"), "mcpToolProperty 'b' has no propertyname"),
        (binding("blob"), "blob binding 'b' has no path"),
        (binding("blob", path="%MISSING%/x"), "app setting 'MISSING' is not set"),
        (binding("blob", path="x/y", connection="../up"), "can't be the name of a connection"),
        (binding("queue", out=True), "has no queuename"),
        (binding("queue", out=True, queueName="a/b"), "can't be the name"),
    ],
)
def test_a_binding_that_cannot_be_served_is_named(extra: ExtraBinding, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BindingError, match=reason):
        plan(tmp_path, extra)


async def test_an_expression_without_a_value_is_an_error_of_the_call(tmp_path: Path, trigger: Trigger) -> None:
    extras = plan(tmp_path, binding("blob", path="x/{mcptoolargs.nothing}"))
    with pytest.raises(ExpressionError, match="has no value"):
        await extras.read(trigger)


async def test_a_full_disk_leaves_no_part_of_a_message(tmp_path: Path, trigger: Trigger) -> None:
    extras = plan(tmp_path, binding("queue", out=True, queueName="jobs", connection="Files"))
    await extras.write(trigger, {"b": Value("string", "before")})
    with file_size_limit(), pytest.raises(BlobError, match="'jobs' can't be written: No space left on device"):
        await extras.write(trigger, {"b": Value("string", "x" * 100_000)})
    await extras.write(trigger, {"b": Value("string", "after")})
    lines = (tmp_path / "Files" / "queues" / "jobs.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["before", "after"]


async def test_a_queue_that_can_not_be_written_is_an_error(tmp_path: Path, trigger: Trigger) -> None:
    (tmp_path / "Files").write_text("in the way")
    extras = plan(tmp_path, binding("queue", out=True, queueName="jobs", connection="Files"))
    with pytest.raises(BlobError, match=r"The queue 'jobs' can't be written: "):
        await extras.write(trigger, {"b": Value("string", "x")})


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
async def test_a_message_that_is_not_json_is_an_error_of_the_call(text: str, tmp_path: Path, trigger: Trigger) -> None:
    extras = plan(tmp_path, binding("queue", out=True, queueName="jobs", connection="Files"))
    with pytest.raises(BlobError, match="The message for a queue is not valid JSON: "):
        await extras.write(trigger, {"b": Value("json", text)})
