"""Codes are explained, near ones are found, and no advice begins by turning a check off."""

from __future__ import annotations

import re

import pytest

from stackbuild.explain.lookup import as_code, explanation, known_codes, near_codes, near_failures
from stackbuild.facts.tables import Facts
from stackbuild.gates.pages import gate_pages

FACTS = Facts()
ROWS = FACTS.table("failure_signatures").rows

# Words by which people turn a safeguard off in place of mending what it found.
_OFF = re.compile(
    r"NVIDIA_DISABLE_REQUIRE|disable-require|--privileged|label=disable|setenforce|trusted-host|no-verify|"
    r"--insecure|break-system-packages|--allow-change-held|SKIP_|verify=False|ignore-requires-python|"
    r"allow-unauthenticated|waive",
    re.IGNORECASE,
)


def first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;:]) ", text)[0]


@pytest.mark.parametrize("code", known_codes(FACTS))
def test_every_code_is_explained_and_no_first_remedy_turns_a_check_off(code: str) -> None:
    shown = explanation(code, FACTS)
    assert shown is not None
    assert shown.meaning
    assert shown.evidence
    assert shown.next_step
    first = first_sentence(shown.next_step)
    off = _OFF.search(first)
    assert off is None or re.match(r"(Remove|Drop|Mend) ", first), first


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_no_row_of_the_catalog_advises_to_turn_a_check_off(row: object) -> None:
    assert not _OFF.search(row.next_step), row.next_step  # type: ignore[attr-defined]
    assert row.cause.endswith(".")  # type: ignore[attr-defined]
    assert row.evidence.endswith(".")  # type: ignore[attr-defined]
    assert row.next_step.endswith(".")  # type: ignore[attr-defined]


def test_rows_of_one_text_each_say_what_tells_them_apart() -> None:
    by_pattern: dict[str, list[str]] = {}
    for row in ROWS:
        by_pattern.setdefault(row.pattern, []).append(row.apart)
    assert [pattern for pattern, apart in by_pattern.items() if len(apart) > 1 and not all(apart)] == []


def test_a_page_wins_over_the_catalog_and_shows_its_texts() -> None:
    shown = explanation("toolkit-not-installed", FACTS)
    assert shown is not None
    assert shown.title == gate_pages()["toolkit-not-installed"].title
    assert 'could not select device driver "" with capabilities: [[gpu]]' in shown.texts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("driver-too-old", "driver-too-old"),
        ("[driver-too-old]", "driver-too-old"),
        (" ort-session\n", "ort-session"),
        ("Error 804", None),
        ("No space left", None),
        ("", None),
    ],
)
def test_what_has_the_form_of_a_code(text: str, code: str | None) -> None:
    assert as_code(text) == code


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("drvier-too-old", "driver-too-old"),
        ("ort-cuda", "ort-cuda-major"),
        ("covered-arch", "arch-not-covered"),
        ("nvml-lost", "nvml-lost-after-reload"),
    ],
)
def test_near_codes(typed: str, meant: str) -> None:
    assert meant in near_codes(typed, FACTS)


def test_nothing_is_near_to_nonsense() -> None:
    assert near_codes("qqqqq-wwwww", FACTS) == ()
    assert near_failures(["The quick brown fox jumps over the lazy dog"], FACTS) == ()


def test_a_text_that_is_almost_known_leads_to_its_code() -> None:
    lines = ["AssertionError: Torch wasn't compiled with CUDA support enabled"]
    assert near_failures(["Torch was not compiled with CUDA enabled"], FACTS) == ("cpu-wheel-in-gpu-image",)
    assert near_failures(lines, FACTS) in ((), ("cpu-wheel-in-gpu-image",))
