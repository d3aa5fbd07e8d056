"""The one spelling of a Python distribution's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from packaging.utils import NormalizedName

_SEPARATORS = re.compile(r"[-_.]+")


def normalized_name(name: str) -> NormalizedName:
    """A distribution's name as indexes spell it: lower case, one hyphen for each run of ``-``, ``_`` and ``.``.

    As ``packaging.utils.canonicalize_name`` does, without importing that: what it brings along is a twentieth
    of the start of ``stackbuild check``.

    Args:
        name: The name as somebody wrote it.

    Source: PyPA, "Names and normalization" (PEP 503).
    """
    return cast("NormalizedName", _SEPARATORS.sub("-", name).lower())
