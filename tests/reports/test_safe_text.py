"""Text of an image in reports: shown, never obeyed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stackbuild.reports.safe_text import safe_line, safe_text, shortened


def test_commands_to_a_terminal_are_written_out() -> None:
    assert safe_text("\x1b[31mred\x1b[0m \x9b31m \x00 \x7f") == "\\x1b[31mred\\x1b[0m \\x9b31m \\x00 \\x7f"


def test_text_that_reads_otherwise_than_it_is_is_written_out() -> None:
    assert safe_text("exe.\u202etxt\ufeff\ud800\uffff") == "exe.\\u202etxt\\ufeff\\ud800\\uffff"


def test_lines_and_tabs_stay_and_a_progress_bar_becomes_lines() -> None:
    assert safe_text("a\tb\r\n10%\r20%\n") == "a\tb\n10%\n20%\n"
    assert safe_line("a\tb\r\n10%\r20%\n") == "a b 10% 20%"


@given(st.text(st.characters(codec=None)))
def test_whatever_comes_can_be_written_to_a_file_and_to_xml(text: str) -> None:
    safe = safe_text(text)
    safe.encode("utf-8")
    assert all(char in "\t\n" or (char.isprintable() or ord(char) > 0x9F) for char in safe)
    assert safe_text(safe) == safe


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "begin" + "x" * 10_000_000 + "end"
    short = shortened(text, 3000)
    assert len(short) < 3100
    assert short.startswith("begin")
    assert short.endswith("end")
    assert "\n… 9997008 characters left out …\n" in short
    assert shortened("short", 3000) == "short"
