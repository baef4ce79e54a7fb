"""Blobs of tasks: names, metadata and content."""

from __future__ import annotations

import re

import pytest

from funcmcp._adapters.azure.task_blobs import (
    NAME,
    BlobName,
    bytes_in,
    digest_of,
    folder_of,
    from_content,
    key_of,
    listed_task,
    metadata_of,
    name_of,
    number_in,
    to_content,
)
from funcmcp._state.tasks.record import NewTask, TaskKey, new_record

RECORD = new_record(NewTask(TaskKey("ab", "x" * 44), "add", b""), 1000.0)


@pytest.mark.parametrize(
    ("server", "readable"),
    [("Orders", "orders-"), ("", ""), ("Über: *", "ber-"), ("-a--b-" * 20, "a-b-a-b-a-b-a-b-a-b-a-b-")],
)
def test_a_server_has_a_folder_that_can_be_part_of_the_name_of_a_queue(server: str, readable: str) -> None:
    folder = folder_of(server)
    assert re.fullmatch(f"{readable}[0-9a-f]{{8}}", folder)
    assert re.fullmatch(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", f"funcmcp-tasks-{folder}")


def test_servers_of_similar_names_have_folders_of_their_own() -> None:
    names = ["Orders", "orders", "orders ", "order-s", "a" * 24, "a" * 25]
    assert len({folder_of(name) for name in names}) == len(names)


@pytest.mark.parametrize("owner", [None, "ab" * 16])
def test_the_name_of_a_blob_contains_the_owner_and_not_the_id(owner: str | None) -> None:
    key = TaskKey(owner, "x" * 44)
    name = name_of(key)
    assert name is not None
    assert name.owner == (owner or "anonymous")
    assert "xx" not in name.digest
    assert NAME.fullmatch(f"{name.owner}/{name.digest}.json")
    assert key_of(name, {"id": "x" * 44}) == key
    assert key_of(name, {"id": "y" * 44}) is None
    assert key_of(name, {}) is None


@pytest.mark.parametrize("key", [TaskKey("ab", "../x"), TaskKey("../x", "x"), TaskKey("", "x"), TaskKey("ab", "")])
def test_a_key_that_no_task_has_has_no_blob(key: TaskKey) -> None:
    assert name_of(key) is None


def test_a_list_shows_the_tasks_with_their_times_and_no_other_blobs() -> None:
    name = BlobName("ab", digest_of("x" * 44))
    metadata = metadata_of(RECORD, "writer", "ab", 3000)
    listed = listed_task(name, metadata)
    assert listed is not None
    assert (listed.key, listed.live_until, listed.removed) == (RECORD.key, RECORD.expires, RECORD.removed)
    assert listed.position == "00000001000000." + "x" * 44
    assert listed_task(name, {}) is None
    assert listed_task(name, {"id": "x" * 44, "removed": "soon"}) is None
    assert listed_task(BlobName("ab", "0" * 64), metadata) is None


@pytest.mark.parametrize("payer", ["ab", None])
def test_a_list_shows_for_whom_the_bytes_of_a_task_count(payer: str | None) -> None:
    metadata = metadata_of(RECORD, "writer", payer, 3000)
    listed = listed_task(BlobName("ab", digest_of("x" * 44)), metadata)
    assert listed is not None
    assert (listed.payer, listed.bytes) == (payer, 3000)
    assert bytes_in({}) == bytes_in({"bytes": "many"}) == 0


@pytest.mark.parametrize(("text", "number"), [("1.5", 1.5), ("", None), (None, None), ("x", None), ("nan", None)])
def test_a_number_is_finite(text: str | None, number: float | None) -> None:
    assert number_in(text) == number


@pytest.mark.parametrize("call", [b"", b'{"a":1e-320}', b'{ "sizes":[1,2,3],\n"record": {}}', b"\xff"])
@pytest.mark.parametrize("outcome", [None, b"{}", b'{"b":"\\ud800"}'])
def test_the_texts_of_a_blob_come_back_byte_for_byte(call: bytes, outcome: bytes | None) -> None:
    content = to_content(b'{"v":1}', call, outcome)
    assert from_content(content) == (b'{"v":1}', call or None, outcome)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"sizes":[2,4,4],"record":{},"call":null,"outcome":null} ',
        b'{"sizes":[3,4,4],"record":{},"call":null,"outcome":null}',
        b'{"sizes":[999999999,4,4],"record":{},"call":null,"outcome":null}',
        b'{"sizes":[9999999999,4,4],"record":{},"call":null,"outcome":null}',
        b'{"sizes":[2,4,4],"record":{},"call":null,"outcome":null',
    ],
)
def test_the_content_of_another_program_is_no_task(content: bytes) -> None:
    assert from_content(content) is None
