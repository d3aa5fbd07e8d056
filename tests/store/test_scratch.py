"""Temporary folders, and what becomes of those of killed runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from stackbuild.store.scratch import scratch_folder, sweep_scratch


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _age(folder: Path) -> None:
    for path in folder.iterdir():
        os.utime(path, (0, 0))


def test_it_goes_at_the_end_whatever_happens(temporary: Path) -> None:
    def interrupted() -> None:
        with scratch_folder() as scratch:
            (scratch.path / "file").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(temporary.iterdir()) == []


def test_a_killed_runs_goes_once_nobody_works_in_it(temporary: Path) -> None:
    code = (
        "import os, signal, subprocess; from stackbuild.store.scratch import scratch_folder\n"
        "with scratch_folder() as scratch:\n"
        "    (scratch.path / 'file').write_text('x')\n"
        "    child = subprocess.Popen(['sleep', '60'], pass_fds=(scratch.descriptor,))\n"
        "    print(child.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        child = int(killed.stdout.readline())
    (left,) = temporary.iterdir()
    assert sweep_scratch() == [], "a young one may not be locked yet"
    _age(temporary)
    assert sweep_scratch() == [], "a program that the killed run started still works in it"
    os.kill(child, 9)
    deadline = time.monotonic() + 100
    while _open_files(child):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert sweep_scratch() == [left.name]
    assert list(temporary.iterdir()) == []


def _open_files(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it is gone
        return []


def test_what_is_in_use_or_not_ours_stays(temporary: Path) -> None:
    (temporary / "outside").mkdir()
    (temporary / "outside" / "kept").write_text("x")
    (temporary / "stackbuild-scratch-link").symlink_to(temporary / "outside")
    (temporary / "stackbuild-scratch-file").write_text("x")
    with scratch_folder() as scratch:
        _age(temporary)
        assert sweep_scratch() == []
        assert scratch.path.is_dir()
    assert (temporary / "outside" / "kept").exists()
