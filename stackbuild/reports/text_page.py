"""A page of text: coloured and wrapped for a terminal, plain and unwrapped for everything else."""

from __future__ import annotations

import io

from rich.console import Console

_UNWRAPPED = 10_000


class TextPage:
    """Takes what a report prints.

    Args:
        colour: Whether the reader is a terminal that wants colour.
        width: Columns of that terminal; plain text is not wrapped.

    Attributes:
        console: To print on.
    """

    def __init__(self, *, colour: bool, width: int) -> None:
        self._stream = io.StringIO()
        self.console = Console(
            file=self._stream,
            force_terminal=colour,
            no_color=not colour,
            width=width if colour else _UNWRAPPED,
            highlight=False,
            color_system="standard" if colour else None,
        )

    def text(self) -> str:
        """What was printed, without spaces at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._stream.getvalue().splitlines()) + "\n"
