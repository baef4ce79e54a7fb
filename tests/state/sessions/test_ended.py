"""Sessions that were ended, in memory that processes share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from funcmcp._state.sessions.ended import VARIABLE, EndedSessions, digest_of, shared_with_workers
from funcmcp._state.sessions.store import SessionsFullError
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from tests.clock import Clock

RECORDS = 64

CHILD = """
import os, sys
from funcmcp._state.sessions.ended import EndedSessions, digest_of
ended = EndedSessions.of_environment(os.environ)
for number in range(int(sys.argv[2])):
    ended.add(digest_of(f"{sys.argv[1]} {number}"), 1e12)
"""

PARENT = """
import time
from funcmcp._state.sessions.ended import VARIABLE, shared_with_workers
environment = {}
with shared_with_workers(environment):
    print(environment[VARIABLE], flush=True)
    time.sleep(60)
"""


def test_a_full_table_refuses_one_more_and_forgets_nothing(clock: Clock) -> None:
    ended = EndedSessions(buckets=1, clock=clock)
    digests = [digest_of(str(number)) for number in range(RECORDS)]
    for number, digest in enumerate(digests):
        ended.add(digest, clock.now + 100 + number)
    with pytest.raises(SessionsFullError) as refused:
        ended.add(digest_of("one more"), clock.now + 1000)
    assert refused.value.retry_after == 101
    assert not refused.value.is_owner_limit
    assert digest_of("one more") not in ended
    assert all(digest in ended for digest in digests)


def test_an_expired_record_makes_room(clock: Clock) -> None:
    ended = EndedSessions(buckets=1, clock=clock)
    for number in range(RECORDS):
        ended.add(digest_of(str(number)), clock.now + 100 + number)
    clock.now += 100
    ended.add(digest_of("one more"), clock.now + 1000)
    assert digest_of("one more") in ended
    assert all(digest_of(str(number)) in ended for number in range(1, RECORDS))
    with pytest.raises(SessionsFullError):
        ended.add(digest_of("another"), clock.now + 1000)


def test_a_hundred_thousand_sessions_have_room() -> None:
    ended = EndedSessions()
    digests = [digest_of(str(number)) for number in range(100_000)]
    for digest in digests:
        ended.add(digest, 1e12)
    assert all(digest in ended for digest in digests)
    assert not any(digest_of(f"living {number}") in ended for number in range(1000))


def test_processes_that_write_at_the_same_time_lose_nothing() -> None:
    environment: dict[str, str] = {}
    with shared_with_workers(environment, buckets=40):
        here = EndedSessions.of_environment(environment)
        command = [sys.executable, "-c", CHILD]
        children = [
            subprocess.Popen([*command, name, "400"], env={**os.environ, **environment}) for name in ("a", "b", "c")
        ]
        assert [child.wait(PATIENCE) for child in children] == [0, 0, 0]
        assert all(digest_of(f"{name} {number}") in here for name in ("a", "b", "c") for number in range(400))
        path = Path(environment[VARIABLE])
    assert not path.exists()
    assert environment == {}


def test_a_temporary_file_is_open_to_its_user_alone_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    environment: dict[str, str] = {}
    with shared_with_workers(environment, buckets=1):
        path = Path(environment[VARIABLE])
        assert path.is_relative_to(tempfile.gettempdir())
        assert path.stat().st_mode & 0o777 == 0o600
        EndedSessions.of_environment(environment).add(digest_of("a"), 1e12)
        assert digest_of("a") in EndedSessions.of_environment(environment)
    assert not path.exists()


def test_without_room_for_the_file_each_process_has_a_table_of_its_own(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "truncate", full)
    environment: dict[str, str] = {}
    with shared_with_workers(environment):
        assert environment == {}
    assert "(No space left on device): a DELETE of a session affects one of them only." in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the table is a temporary file")
def test_the_table_needs_no_room_in_a_folder_and_goes_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        path = Path(parent.stdout.readline().strip())
        assert path.exists()
        assert path.parts[1] == "proc"
        assert list(tmp_path.iterdir()) == []
        parent.kill()
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_two_processes_end_takes_one_record(clock: Clock) -> None:
    ended = EndedSessions(buckets=1, clock=clock)
    for _ in range(RECORDS + 1):
        ended.add(digest_of("a"), clock.now + 100)
    ended.add(digest_of("b"), clock.now + 100)
    assert digest_of("b") in ended


def test_a_file_that_is_missing_is_a_warning(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    ended = EndedSessions.of_environment({VARIABLE: str(tmp_path / "missing")})
    ended.add(digest_of("a"), 1e12)
    assert digest_of("a") in ended
    [record] = caplog.records
    assert record.message == (
        "FUNCMCP_ENDED_SESSIONS can't be opened (No such file or directory): "
        "a DELETE of a session affects this process only."
    )
