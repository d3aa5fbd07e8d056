"""What one process finds down all leave alone, and nothing of it outlives their common work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stackbuild.store.shared_outages import SharedOutages

URL = "https://index.example/simple/numpy/"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "outages.json"
    made.touch()
    return made


def test_failures_of_all_count_together_and_one_answer_ends_them(file: Path) -> None:
    one, other = SharedOutages(file, apart=0), SharedOutages(file, apart=0)
    one.failed(URL, "refused")
    other.failed(URL, "refused")
    assert one.down(URL) is None
    one.failed(URL, "500 in the end")
    assert other.down(URL) == "500 in the end"
    assert SharedOutages(file).down(URL) == "500 in the end", "one that comes later asks no more"
    assert other.down("https://other.example/") is None
    other.answered(URL)
    assert one.down(URL) is None


def test_whoever_forgets_forgets_for_all(file: Path) -> None:
    one, other = SharedOutages(file, apart=0), SharedOutages(file, apart=0)
    for _ in range(3):
        one.failed(URL, "refused")
    other.forget()
    assert one.down(URL) is None


def test_failures_that_are_under_way_together_are_one_in_all_processes(file: Path) -> None:
    now = [10.0]
    one, other = (SharedOutages(file, clock=lambda: now[0]) for _ in range(2))
    for second in (10.0, 10.5, 12.0):
        now[0] = second
        one.failed(URL, "refused")
        other.failed(URL, "refused")
    assert one.down(URL) is None
    now[0] = 14.0
    other.failed(URL, "refused")
    assert one.down(URL) == "refused"


@pytest.mark.parametrize("content", ["{", "[]", '{"index.example": {"fail', '{"index.example": [3]}'])
def test_what_a_killed_process_left_half_written_says_nothing(file: Path, content: str) -> None:
    file.write_text(content)
    outages = SharedOutages(file, apart=0)
    assert outages.down(URL) is None
    for _ in range(3):
        outages.failed(URL, "refused")
    assert SharedOutages(file).down(URL) == "refused"


def test_without_the_file_each_finds_out_for_itself(file: Path) -> None:
    file.unlink()
    outages = SharedOutages(file, apart=0)
    for _ in range(3):
        outages.failed(URL, "refused")
    assert outages.down(URL) == "refused"
    assert SharedOutages(file).down(URL) is None
    assert not file.exists(), "it belongs to whoever began the work"


def test_processes_lose_nothing_of_each_other(file: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from stackbuild.store.shared_outages import SharedOutages\n"
        "outages = SharedOutages(Path(sys.argv[1]), apart=0)\n"
        "for number in range(100):\n"
        "    outages.failed(f'https://{sys.argv[2]}-{number % 10}.example/', 'refused')\n"
    )
    root = str(Path(__file__).parents[2])
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(file), name], env={"PYTHONPATH": root})
        for name in ("a", "b", "c")
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    outages = SharedOutages(file)
    servers = [f"https://{name}-{number}.example/" for name in "abc" for number in range(10)]
    assert [outages.down(server) for server in servers] == ["refused"] * 30
