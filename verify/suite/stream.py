"""The marked stream: one event a line on standard output, told apart from anything else printed there."""

from __future__ import annotations

import json
import sys
import threading
from typing import Any, Dict

MARK = "@stackbuild@ "


class EventStream:
    """Writes events as marked JSON lines; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, event: Dict[str, Any]) -> None:
        """Write one event and flush it, so that the reader sees it as it comes."""
        # ASCII only: the image's locale decides the encoding of standard output.
        line = MARK + json.dumps(event, ensure_ascii=True, sort_keys=True) + "\n"
        with self._lock:
            sys.stdout.write(line)
            sys.stdout.flush()
