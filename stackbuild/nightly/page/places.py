"""Where pages lie, and links that lead nowhere else."""

from __future__ import annotations

import hashlib
import re
from itertools import dropwhile
from pathlib import PurePosixPath
from urllib.parse import quote

from stackbuild.nightly.history.model import Series
from stackbuild.nightly.model import label_of
from stackbuild.spec.platforms import platform_in_a_name

INDEX = "index.html"
STACKS = "stacks"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")


def label(series: Series) -> str:
    """What a reader calls it: the stack's name, with the platform where the stack has several."""
    return label_of(series.stack, "" if series.only else series.platform)


def page_name(series: Series) -> str:
    """The file name of its page; a name that could be more than a name becomes a hash."""
    name = series.stack if series.only else f"{series.stack}--{platform_in_a_name(series.platform)}"
    if _PLAIN.fullmatch(name):
        return f"{name}.html"
    return f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.html"


def report_link(path: str, up: str = "") -> str:
    """A report's path as a link; empty when it is not a plain relative path.

    Args:
        path: Relative to the folder of the page, with slashes; it may begin with ``../``, for reports can be kept
            beside that folder.
        up: What leads from the linking page to that folder, for example ``../``.
    """
    parts = PurePosixPath(path).parts
    inner = list(dropwhile(lambda part: part == "..", parts))
    if not inner or path.startswith("/") or ".." in inner or _CONTROL.search(path):
        return ""
    # The dot keeps a colon in the first part from being read as a scheme (RFC 3986, section 4.2).
    return (up or "./") + quote("/".join(parts), safe="/", errors="backslashreplace")
