"""The file with the tokens: several processes, files that can't be used, and the keyring of the system."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from funcmcp._client import token_file
from funcmcp._client.token_file import TokenFile
from funcmcp.client import Client, HTTPEndpoint, KeyringFile, SignIn
from tests.client.authorizing import Visitor
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.client.authorizing import Authorizing

URL = "https://orders.example.com/mcp"
ENTRY = {"access_token": "canary"}


async def put(place: Path | KeyringFile, url: str = URL, entry: dict[str, Any] = ENTRY) -> None:
    file = TokenFile(place)
    async with file.locked():
        await file.put(url, entry)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_processes_that_write_at_once_lose_no_entry(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    program = (
        "import asyncio, sys, pathlib\n"
        "from tests.client.test_token_file import put\n"
        "async def main():\n"
        "    for n in range(20):\n"
        "        await put(pathlib.Path(sys.argv[1]), f'{sys.argv[2]} {n}', {'n': n})\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, str(file)]
    processes = [subprocess.Popen([*command, name], cwd=REPOSITORY) for name in ("a", "b", "c")]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert len(json.loads(file.read_text())) == 60
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_clients_that_renew_one_token_at_once_send_one_request(server: Authorizing, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    endpoint = HTTPEndpoint(server.url, sign_in=SignIn(open_browser=Visitor(), file=file))
    async with Client(endpoint):
        pass
    entries = json.loads(file.read_text())
    entries[server.url]["expires"] = 1
    file.write_text(json.dumps(entries))
    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(_connect(endpoint))
    assert [form["grant_type"] for form in server.those("token")] == ["authorization_code", "refresh_token"]


async def test_of_clients_that_start_at_once_one_opens_the_browser(server: Authorizing, tmp_path: Path) -> None:
    visitor = Visitor()
    endpoint = HTTPEndpoint(server.url, sign_in=SignIn(open_browser=visitor, file=tmp_path / "tokens.json"))
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(_connect(endpoint))
    assert len(visitor.addresses) == len(server.those("register")) == len(server.those("token")) == 1


async def test_the_next_client_asks_the_user_if_the_first_one_ends_before(server: Authorizing, tmp_path: Path) -> None:
    opened, visitor, file = asyncio.Event(), Visitor(), tmp_path / "tokens.json"
    left = SignIn(open_browser=lambda _address: opened.set(), file=file)
    first = asyncio.create_task(_connect(HTTPEndpoint(server.url, sign_in=left)))
    await opened.wait()
    second = asyncio.create_task(_connect(HTTPEndpoint(server.url, sign_in=SignIn(open_browser=visitor, file=file))))
    first.cancel()
    await second
    assert len(visitor.addresses) == 1


async def _connect(endpoint: HTTPEndpoint) -> None:
    async with Client(endpoint):
        pass


async def test_the_lock_of_another_client_is_waited_for(tmp_path: Path) -> None:
    first, second = TokenFile(tmp_path / "tokens.json"), TokenFile(tmp_path / "tokens.json")
    order: list[str] = []
    async with first.locked():
        waiting = asyncio.create_task(_append_under_lock(second, order))
        await asyncio.sleep(0)
        order.append("first")
    await waiting
    assert order == ["first", "second"]


async def _append_under_lock(file: TokenFile, order: list[str]) -> None:
    async with file.locked():
        order.append("second")


async def test_a_lock_that_is_not_released_in_time_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_file, "_LOCK_SECONDS", 0.05)
    async with TokenFile(tmp_path / "tokens.json").locked():
        await put(tmp_path / "tokens.json")
    assert json.loads((tmp_path / "tokens.json").read_text()) == {URL: ENTRY}


async def test_a_file_system_without_locks_is_used_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    await put(tmp_path / "tokens.json")
    assert await TokenFile(tmp_path / "tokens.json").entry(URL) == ENTRY


async def test_a_place_that_can_not_be_written_is_one_line_in_the_log(
    server: Authorizing, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder").write_text("a file")
    file = tmp_path / "folder" / "tokens.json"
    async with Client(HTTPEndpoint(server.url, sign_in=SignIn(open_browser=Visitor(), file=file))) as client:
        assert (await client.call_tool("greet")).text == "hello"
        server.valid = set()
        assert (await client.call_tool("greet")).text == "hello"
    assert caplog.text.count("event=token_file_failed") == 1
    assert "token-1" not in caplog.text


async def test_a_file_that_is_a_folder_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "tokens.json").mkdir()
    await put(tmp_path / "tokens.json")
    assert "event=token_file_failed" in caplog.text
    assert sorted(os.listdir(tmp_path)) == ["tokens.json", "tokens.json.lock"]  # noqa: PTH208 - quick


async def test_a_pipe_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tokens.json")
    assert await TokenFile(tmp_path / "tokens.json").entry(URL) is None


class Memory(KeyringBackend):
    """A keyring in memory, which may be locked."""

    priority = 1

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise KeyringLocked("The user has dismissed it.")
        return self.values.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.values[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.values[service, username]


@pytest.fixture
def system() -> Iterator[Memory]:
    before = keyring.get_keyring()
    memory = Memory()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


async def test_with_a_keyring_the_file_has_nothing_to_read(system: Memory, tmp_path: Path) -> None:
    place = KeyringFile(tmp_path / "tokens.json")
    await put(place)
    text = (tmp_path / "tokens.json").read_text()
    assert "canary" not in text
    assert list(json.loads(text)[URL]) == ["concealed"]
    assert await TokenFile(place).entry(URL) == ENTRY
    (key,) = system.values.values()
    assert len(bytes.fromhex(key)) == 32
    assert "canary" not in str(system.values)


async def test_a_user_signs_in_once_with_a_keyring(system: Memory, server: Authorizing, tmp_path: Path) -> None:
    visitor, place = Visitor(), KeyringFile(tmp_path / "tokens.json", service="desk")
    for _ in range(2):
        await _connect(HTTPEndpoint(server.url, sign_in=SignIn(open_browser=visitor, file=place)))
    assert len(visitor.addresses) == 1
    assert next(iter(system.values))[0] == "desk"


async def test_without_the_key_the_entry_can_not_be_read(system: Memory, tmp_path: Path) -> None:
    place = KeyringFile(tmp_path / "tokens.json")
    await put(place)
    system.values.clear()
    assert await TokenFile(place).entry(URL) is None
    await put(place)  # with a new key
    assert await TokenFile(place).entry(URL) == ENTRY


@pytest.mark.parametrize("text", ["c1.AAAA", "c1." + "A" * 120, ""])
async def test_an_entry_that_was_changed_is_not_used(system: Memory, tmp_path: Path, text: str) -> None:
    place = KeyringFile(tmp_path / "tokens.json")
    await put(place)
    place.path.write_text(json.dumps({URL: {"concealed": text}}))
    assert await TokenFile(place).entry(URL) is None
    assert system.values


async def test_a_plain_entry_is_used_and_then_encrypted(system: Memory, tmp_path: Path) -> None:
    place = KeyringFile(tmp_path / "tokens.json")
    await put(place.path)
    assert await TokenFile(place).entry(URL) == ENTRY
    await put(place)
    assert "canary" not in place.path.read_text()
    assert system.values


@pytest.mark.parametrize("state", ["locked", "broken", "absent"])
async def test_where_there_is_no_keyring_only_the_owner_can_read_the_file(
    system: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    system.is_locked = state == "locked"
    if state == "broken":
        system.values["funcmcp", "key of the tokens"] = "not hexadecimal"
    if state == "absent":
        monkeypatch.setitem(sys.modules, "keyring", None)
    place = KeyringFile(tmp_path / "tokens.json")
    await put(place)
    assert json.loads(place.path.read_text()) == {URL: ENTRY}
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600
    assert await TokenFile(place).entry(URL) == ENTRY
