"""Memory and time of `stackbuild diff` where very many files changed, in each format.

Run: python -m bench.diff [FILES]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from stackbuild.cli.main import run
from stackbuild.errors import ExitCode
from tests.drift.images import OS, archive
from tests.support.layer_tars import Content, layer_tar
from tests.support.measured import measured

FILES = 100_000
FORMATS = ("table", "json", "markdown", "html", "junit")
MARK = 2_700  # bytes of memory for each changed file


def image(folder: Path, name: str, files: int, text: str) -> Path:
    """An image of one layer whose files all have this content."""
    made: Mapping[str, Content] = {
        f"opt/venv/lib/python3.11/site-packages/package{number % 300}/data/file{number}.txt": text
        for number in range(files)
    }
    return archive(folder / name, layer_tar({**OS, **made}))


def diff(before: Path, after: Path, format_: str, output: Path) -> int:
    """Compare two images as a person does; the exit code."""
    return run(["diff", str(before), str(after), "--no-store", "-q", "--format", format_, "-o", str(output)])


def main() -> int:
    """Print the figures; 1 when memory misses its mark."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    missed = False
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        before, after = (image(folder, f"{text}.tar", files, text) for text in ("a", "b"))
        for format_ in FORMATS:
            output = folder / f"diff.{format_}"
            took = measured(diff, before, after, format_, output)
            if took.value != ExitCode.DRIFT:
                print(f"{format_}: exit code {took.value}, expected {int(ExitCode.DRIFT)}")
                return 1
            each = took.peak / files
            missed |= each > MARK
            print(
                f"{format_}: {files} changed files: {took.seconds:.1f} s, {took.peak / 1e6:.0f} MB, "
                f"{each:.0f} bytes a file (mark: {MARK}); written: {output.stat().st_size / 1e6:.1f} MB"
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
