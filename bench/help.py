"""How long ``stackbuild --help`` takes, against an interpreter that only imports click.

python -m bench.help
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.start import start

MARK = 1.5
ROUNDS = 15


def main() -> int:
    """Print both medians and their ratio."""
    ours = [sys.executable, "-m", "stackbuild", "--help"]
    peer = [sys.executable, "-c", "import click"]
    taken = start(ours, peer, folder=Path.cwd(), rounds=ROUNDS)
    print(f"stackbuild --help         {taken.ours * 1000:7.1f} ms")
    print(f'python -c "import click"  {taken.peer * 1000:7.1f} ms')
    print(f"ratio {taken.ratio:.2f} (mark: at most {MARK})")
    return 0 if taken.ratio <= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
