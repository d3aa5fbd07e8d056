from __future__ import annotations

import io

import pytest

from stackbuild.cli import output
from stackbuild.cli.progress import PlainObserver, amount, observed
from stackbuild.progress import SilentObserver


def test_a_pipe_gets_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with observed() as observer:
        assert isinstance(observer, PlainObserver)
        observer.stage("wheels", "torch")
        observer.advance("torch", 1, 2)
        observer.note("waiting")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "wheels: torch\nwaiting\n"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with observed(quiet=True) as observer:
        assert isinstance(observer, SilentObserver)
        observer.note("x")
    assert capsys.readouterr() == ("", "")


def test_the_same_file_of_the_next_stack_is_no_long_transfer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("stackbuild.cli.progress.time.monotonic", lambda: now[0])
    observer = PlainObserver()
    for began in (0.0, 60.0, 120.0):
        now[0] = began
        observer.advance("done.deb", 1, 2)
        observer.advance("done.deb", 2, 2)
        observer.advance("cut.deb", 1, 3)
        observer.advance("cut.deb", 2, 3)
    assert capsys.readouterr().err == ""
    now[0] = 131.0
    observer.advance("cut.deb", 2, 3)
    assert capsys.readouterr().err == "cut.deb: 2 B of 3 B\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "expected"), [({}, False), ({"NO_COLOR": "1"}, True), ({"CI": "true"}, True)]
)
def test_no_color_and_ci_are_plain_even_on_a_terminal(
    environment: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert output.plain(Terminal()) is expected


@pytest.mark.parametrize(
    ("count", "unit", "shown"),
    [
        (999, "bytes", "999 B"),
        (1_500_000, "bytes", "1.5 MB"),
        (3_200_000_000, "bytes", "3.2 GB"),
        (7, "files", "7 files"),
    ],
)
def test_amounts_read_easily(count: int, unit: str, shown: str) -> None:
    assert amount(count, unit) == shown
