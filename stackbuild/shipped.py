"""Files that ship beside the code: templates, stacks and the suite that runs inside images.

They are edited at the top of the repository and carried in the wheel inside ``stackbuild/_shipped``.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped_folder(name: str) -> Path:
    """The folder ``templates``, ``stacks`` or ``verify``, from the wheel or from the repository.

    Raises:
        FileNotFoundError: The installation is not whole.
    """
    for parent in (_PACKAGE / "_shipped", _PACKAGE.parent):
        if (parent / name).is_dir():
            return parent / name
    raise FileNotFoundError(f"stackbuild's own folder '{name}' is missing: install stackbuild again")


def shipped_stack(name: str) -> Path | None:
    """The spec of a stack that ships with stackbuild, or None."""
    specs = shipped_folder("stacks").glob("*.yaml")
    return next((path for path in specs if path.stem == name), None)
