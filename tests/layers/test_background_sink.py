from __future__ import annotations

import io
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from stackbuild.layers.background_sink import in_background


def test_blocks_arrive_in_order_and_all_of_them() -> None:
    sink = io.BytesIO()
    with in_background(sink) as background:
        for number in range(200):
            background.write(bytes([number]))
    assert sink.getvalue() == bytes(range(200))


class Full:
    """A disk with room for two blocks."""

    blocks = 0

    def write(self, data: bytes, /) -> None:
        self.blocks += 1
        if self.blocks > 2:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("blocks", [3, 100])
def test_a_failure_of_the_sink_is_raised_and_nothing_hangs(blocks: int) -> None:
    full = Full()

    def fill() -> None:
        with in_background(full) as background:
            for _ in range(blocks):
                background.write(b"x")

    with pytest.raises(OSError, match="No space left"):
        fill()
    assert full.blocks == 3


def test_a_failure_of_the_writer_ends_the_thread() -> None:
    before = threading.active_count()

    def interrupted() -> None:
        with in_background(io.BytesIO()) as background:
            background.write(b"x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert threading.active_count() == before


def test_an_interrupt_at_any_moment_ends_it() -> None:
    script = textwrap.dedent(
        """
        import random, signal
        from stackbuild.layers.background_sink import in_background
        class Sink:
            def write(self, data): pass
        def stop(number, frame): raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, stop)
        moments = random.Random(0)
        for turn in range(400):
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, moments.uniform(2e-4, 2e-3))
                    with in_background(Sink()) as sink:
                        for _ in range(5000):
                            sink.write(b"x")
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
        """
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script], cwd=root, timeout=60, check=True, capture_output=True)
