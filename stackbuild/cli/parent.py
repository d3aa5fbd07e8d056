"""The life of a process that another stackbuild began."""

from __future__ import annotations

import os
import signal
import threading


def end_with_parent() -> None:
    """From now on end, as after Ctrl-C, when stdin ends: only the process that began this one holds its other end."""

    def watch() -> None:
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
