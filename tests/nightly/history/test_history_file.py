"""The history file under what happens to files: kills, other processes, damage, other versions, no space, no rights."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stackbuild.errors import BuildError, NotJudgedError, StackbuildError, UsageError
from stackbuild.nightly.history.history import History
from stackbuild.nightly.history.schema import APPLICATION_ID, STEPS
from stackbuild.progress import SilentObserver
from tests.nightly.nights import DRIFT, night, result

_ADDS_UNTIL_KILLED = """
import itertools, sys
from pathlib import Path
from stackbuild.nightly.history.history import History
from tests.nightly.nights import night, result
with History(Path(sys.argv[1])) as history:
    for number in itertools.count():
        history.add(night(*(result(f"stack-{name}", number=number) for name in range(20)), number=number))
        print(number, flush=True)
"""
_FIRST_SCHEMA = Path(__file__).with_name("schema-1.sql")
_NEXT = (
    "ALTER TABLE nights ADD COLUMN weather TEXT NOT NULL DEFAULT 'dry'",
    "UPDATE nights SET weather = 'wet'",
)


class Listener(SilentObserver):
    """Hears of waiting, and then has what is waited for released."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.release: Callable[[], None] = lambda: None

    def note(self, message: str) -> None:
        self.notes.append(message)
        self.release()


def test_a_killed_process_loses_no_night_that_it_reported_and_leaves_no_half_one(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    seen = -1
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", _ADDS_UNTIL_KILLED.replace("count()", f"count({seen + 1})"), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= seen + 15:
                process.send_signal(signal.SIGKILL)  # it goes on adding meanwhile
                break
        seen = int(line)
        for line in process.stdout:
            seen = int(line)
        assert process.wait() == -signal.SIGKILL
        assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert sqlite3.connect(path).execute("PRAGMA foreign_key_check").fetchall() == []
        with History(path) as history:
            numbers = [int(summary.id[-4:], 16) for summary in reversed(history.nights())]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) in (seen + 1, seen + 2), (
                "what was reported, and at most the one not yet reported"
            )
            assert {sum(summary.outcomes.values()) for summary in history.nights()} == {20}
            seen = numbers[-1]
            last = history.last("stack-19")
            assert last == result("stack-19", number=seen).model_copy(
                update={"findings": last.findings if last else ()}
            )


def test_a_second_process_waits_and_says_so(tmp_path: Path) -> None:
    path, listener = tmp_path / "history.sqlite", Listener()
    with History(path) as history:
        history.add(night(number=1))
    with _held(path) as listener.release, History(path, observer=listener) as history:
        assert len(history.nights()) == 1, "reading does not wait"
        assert listener.notes == []
        history.add(night(number=2))
    assert listener.notes == [f"waiting for {path}: another process is writing to it"]
    with History(path) as history:
        assert len(history.nights()) == 2


def test_opening_waits_for_a_process_that_has_the_file_to_itself(tmp_path: Path) -> None:
    path, listener = tmp_path / "history.sqlite", Listener()
    with History(path) as history:
        history.add(night())
    # As SQLite has it while it puts a file in order after a crash, or closes it for the last time.
    with (
        _held(path, "PRAGMA locking_mode = EXCLUSIVE") as listener.release,
        History(path, observer=listener) as history,
    ):
        assert len(history.nights()) == 1
    assert listener.notes == [f"waiting for {path}: another process is writing to it"]


def test_waiting_ends(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with History(path, patience=0.1) as history, _held(path):
        with pytest.raises(NotJudgedError, match="another process has been writing") as failure:
            history.add(night())
        assert failure.value.code == "history-busy"
    with History(path) as history:
        history.add(night())


def test_many_processes_make_and_fill_one_file(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    add = (
        "import sys\nfrom pathlib import Path\nfrom stackbuild.nightly.history.history import History\n"
        "from tests.nightly.nights import night\n"
        "with History(Path(sys.argv[1])) as history:\n"
        "    for number in range(5):\n"
        "        history.add(night(number=int(sys.argv[2]) * 5 + number))\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", add, str(path), str(one)]) for one in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with History(path) as history:
        assert len(history.nights()) == 15


def test_a_file_of_an_older_schema_is_brought_to_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with History(path) as history:
        history.add(night())
    with History(path, steps=(*STEPS, _NEXT)) as history:
        assert len(history.nights()) == 1
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT weather FROM nights").fetchall() == [("wet",)]
    assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS) + 1,)


def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with History(path) as history:
        history.add(night())
    with pytest.raises(NotJudgedError, match="no such table"):
        History(path, steps=(*STEPS, _NEXT, ("DROP TABLE absent",)))
    with History(path) as history:
        assert len(history.nights()) == 1
    assert "weather" not in sqlite3.connect(path).execute("SELECT sql FROM sqlite_schema").fetchone()[0]


def test_a_newer_schema_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with History(path, steps=(*STEPS, _NEXT)) as history:
        history.add(night())
    with pytest.raises(
        NotJudgedError, match=f"of schema {len(STEPS) + 1}, written by a newer stackbuild"
    ) as failure:
        History(path)
    assert failure.value.code == "history-newer"


def test_a_file_of_the_first_schema_still_opens(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with sqlite3.connect(path) as connection:
        connection.executescript(_FIRST_SCHEMA.read_text(encoding="utf-8"))
    with History(path) as history:
        last = history.last("torch-cu130")
    assert last is not None
    assert last == result(findings=last.findings, drift=DRIFT)


def test_a_released_step_does_not_change() -> None:
    # Files that have it would be taken for something that they are not.
    made, kept = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    for statement in STEPS[0]:
        made.execute(statement)
    kept.executescript(_FIRST_SCHEMA.read_text(encoding="utf-8"))
    query = "SELECT type, name, sql FROM sqlite_schema ORDER BY name"
    assert made.execute(query).fetchall() == kept.execute(query).fetchall()


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"these are not the rows you are looking for " * 200)


def _of_another_program(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE bookmarks (url)")


def _cut_off(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size // 2)


def _overwritten(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.seek(4096)
        stream.write(b"\xa5" * (path.stat().st_size - 4096))


def _used(path: Path) -> None:
    with History(path) as history:
        history.add(night(number=99))
        history.stack_trend("torch-cu130")


@pytest.mark.parametrize("harm", [_not_a_database, _cut_off, _overwritten])
def test_a_damaged_file_is_told_and_left_alone(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "history.sqlite"
    with History(path) as history:
        for number in range(20):
            history.add(night(result(number=number), number=number))
    harm(path)
    before = path.read_bytes()
    with pytest.raises(NotJudgedError, match="damaged") as failure:
        _used(path)
    assert (failure.value.code, failure.value.where) == ("history-damaged", str(path))
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    _of_another_program(path)
    before = path.read_bytes()
    with pytest.raises(NotJudgedError, match="of another program") as failure:
        History(path)
    assert failure.value.code == "history-damaged"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE contents SET body = x'00'", "a stored value cannot be read"),
        ("UPDATE results SET seconds = 'long'", "a stored value cannot be read"),
        ("DROP TABLE results", "no such table"),
        ("ALTER TABLE results DROP COLUMN tries", "no such column"),
    ],
)
def test_what_cannot_be_read_of_a_table_is_damage(tmp_path: Path, statement: str, words: str) -> None:
    path = tmp_path / "history.sqlite"
    with History(path) as history:
        history.add(night())
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    with History(path) as history, pytest.raises(NotJudgedError, match=words) as failure:
        history.last("torch-cu130")
    assert failure.value.code == "history-damaged"


def test_what_is_no_file_is_told_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null"), Path("/dev/full")):
        with pytest.raises(UsageError, match="it is no file") as failure:
            History(path)
        assert failure.value.code == "history-unusable"


def test_a_full_disk_is_told_and_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    with History(path) as history:
        history.add(night())
        # SQLite meets the limit as it meets a full disk: SQLITE_FULL in the midst of the transaction.
        pages = history._database.execute("PRAGMA page_count").fetchone()[0]
        history._database.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(BuildError, match="the disk is full") as failure:
            history.add(night(*(result(f"stack-{number}") for number in range(500)), number=1))
        assert failure.value.code == "disk-full"
        assert len(history.nights()) == 1


@pytest.mark.parametrize("made", [False, True], ids=["new", "there"])
def test_a_folder_without_the_right_to_write_is_told(made: bool, open_folder: Path) -> None:
    path = open_folder / "history.sqlite"
    if made:
        with History(path) as history:
            history.add(night())
    open_folder.chmod(0o555)

    def attempt() -> str:
        try:
            with History(path) as history:
                history.add(night(number=1))
        except StackbuildError as error:
            return f"{type(error).__name__} {error.code} {error.where}"
        return "written"

    assert _as_nobody(attempt) == f"UsageError history-unusable {path}"


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "nightly").write_text("")
    with pytest.raises(UsageError, match="cannot be written") as failure:
        History(tmp_path / "nightly" / "history.sqlite")
    assert failure.value.code == "history-unusable"
    with pytest.raises(UsageError, match="cannot be written"):
        History(tmp_path)


def test_an_empty_file_is_a_new_history(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    path.touch()
    with History(path) as history:
        history.add(night())
    assert sqlite3.connect(path).execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.fixture
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that every user can reach, unlike those of pytest."""
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    subprocess.run(["rm", "-r", str(folder)], check=True)


@contextmanager
def _held(path: Path, first: str = "SELECT 1") -> Iterator[Callable[[], None]]:
    """The file while another process writes to it; what is yielded ends that."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(first)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection.close
    finally:
        connection.close()


def _as_nobody(attempt: Callable[[], str]) -> str:
    """What a function says in a process without root's rights."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "it died"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            said = attempt()
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def test_a_night_is_kept_where_the_file_was_removed_or_replaced_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "nightly/history.sqlite"
    with History(path) as history:
        history.add(night(result("a"), number=0))
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink()
        history.add(night(result("b"), number=1))
        shutil.rmtree(path.parent)
        history.add(night(result("c", outcome="failed"), number=2))
        assert history.stacks() == ("c",)
    with History(tmp_path / "other.sqlite") as other:
        other.add(night(result("d"), number=3))
    with History(path) as history:
        (tmp_path / "other.sqlite").replace(path)
        history.add(night(result("e"), number=4))
        assert history.stacks() == ("d", "e")
    with History(path) as history:
        assert history.stacks() == ("d", "e")
