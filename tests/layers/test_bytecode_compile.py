"""The program that compiles inside an image."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stackbuild.layers import bytecode_compile
from stackbuild.layers.bytecode_compile import compile_job, has_moving_set, read_names, run_jobs, write_names

BEFORE_312 = sys.version_info < (3, 12)


def _compile(tmp_path: Path, source: str, *, addresses_move: bool = True) -> Path:
    path = tmp_path / "module.py"
    path.write_text(source)
    job = tmp_path / "job"
    write_names(str(job), [str(path)])
    compile_job(str(job), addresses_move=addresses_move)
    return job


@pytest.mark.parametrize(
    ("source", "moving"),
    [
        ("def f(x):\n    return x in {None, 'a', 'b'}\n", BEFORE_312),
        ("def f(x):\n    return x in {..., 'a'}\n", True),
        ("def f(x):\n    return x in {(1, ...), 'a'}\n", True),
        ("def f(x):\n    return x in {'a', 'b', 1.5}\n", False),
        ("def f(x):\n    return x in {None}\n", False),
        ("def f(x):\n    return x in (None, ...)\n", False),
    ],
)
def test_a_set_that_is_ordered_by_addresses_is_found(tmp_path: Path, source: str, moving: bool) -> None:
    job = _compile(tmp_path, source)
    made = read_names(f"{job}.made")
    assert len(made) == 1
    assert has_moving_set(made[0]) is moving
    assert read_names(f"{job}.moving") == (made if moving else [])


def test_where_addresses_stay_no_set_moves(tmp_path: Path) -> None:
    assert read_names(f"{_compile(tmp_path, 'x = 1 in {..., 2}', addresses_move=False)}.moving") == []


def test_a_source_that_does_not_compile_is_listed(tmp_path: Path) -> None:
    job = _compile(tmp_path, "print 'no'\n")
    assert read_names(f"{job}.failed") == [str(tmp_path / "module.py")]
    assert read_names(f"{job}.made") == []


def test_a_job_that_ends_badly_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job"
    write_names(str(job), [str(tmp_path / "absent.py")])
    assert run_jobs([str(job)]) == 1
    assert f"{job} ended with status" in capfd.readouterr().out


def test_names_of_any_bytes_survive(tmp_path: Path) -> None:
    names = ["a b", "new\nline", b"latin\xff".decode("utf-8", "surrogateescape")]
    write_names(str(tmp_path / "names"), names)
    assert read_names(str(tmp_path / "names")) == names


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = f"import runpy; runpy.run_path({bytecode_compile.__file__!r}, run_name='checked')"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
