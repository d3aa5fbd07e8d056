"""An interrupt while a wheel's layer is written: a whole layer is kept or none, and nothing hangs."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.wheels import make_wheel


def test_an_interrupt_at_any_moment_leaves_a_whole_layer_or_none(tmp_path: Path) -> None:
    make_wheel(tmp_path, "big", "1.0", files={f"big/{name}.py": name * 20_000 for name in "abcdefghijklmnop"})
    script = textwrap.dedent(
        """
        import os, random, signal, sys
        from pathlib import Path
        from stackbuild.store.store import Store
        from tests.layers.wheel_files import locked, maker, venv_tree
        folder = Path(sys.argv[1])
        (wheel,) = folder.glob("*.whl")
        made, tree = maker(locked(wheel)), venv_tree()
        store, whole = Store(folder / "store"), Store(folder / "whole")
        with whole.new_layer("x") as sink:
            made.make(sink, tree)
        diff_id = sink.layer.diff_id
        def stop(number, frame): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, stop)
        moments, stopped = random.Random(0), 0
        for turn in range(150):
            key = f"k{turn}"
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, moments.uniform(2e-4, 1.2e-2))
                    with store.new_layer(key) as sink:
                        made.make(sink, tree)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            found = store.layer(key)
            assert found is None or found.diff_id == diff_id, key
        for left in (store.root / "tmp").iterdir():  # of interrupts in the very moment it was made
            os.utime(left, (0, 0))
        store.sweep()
        assert list((store.root / "tmp").iterdir()) == []
        print(stopped)
        """
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=root, timeout=600, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20, "too few of them were interrupted to say anything"
