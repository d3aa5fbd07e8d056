"""What an installation leaves behind that is no part of an image: the declared table.

Everything an installation writes goes into the layer, but what this table names: noise that differs
from run to run (logs, caches, locks), files that the engine puts over the image's own (``/etc/hosts``),
and what must be made anew on every machine (``machine-id``, host keys).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stackbuild.errors import BuildError
from stackbuild.layers.tar_writer import Xattrs
from stackbuild.layers.tree import XATTR_PREFIX

Action = Literal["drop", "empty", "refuse"]


@dataclass(frozen=True)
class PathRule:
    """What becomes of the paths that match.

    Attributes:
        pattern: Matches a whole path without leading slash.
        action: drop: not in the layer; empty: in the layer without content; refuse: no layer is made.
        why: Shown when a path is refused.
        directories: Whether directories fall under it too; where not, they stay, since a service may
            need its ``/var/log/NAME``.
    """

    pattern: re.Pattern[str]
    action: Action
    why: str
    directories: bool = False


def _rule(pattern: str, action: Action, why: str, *, directories: bool = False) -> PathRule:
    return PathRule(re.compile(pattern), action, why, directories)


# The first rule that matches decides; a path that no rule matches is kept.
MACHINE_UNIQUE: tuple[PathRule, ...] = (
    _rule(r"(dev|proc|sys|tmp|var/tmp)/.+", "drop", "belongs to the running system", directories=True),
    _rule(r"run/(?!lock$).+", "drop", "belongs to the running system", directories=True),
    _rule(r"etc/(hostname|hosts|resolv\.conf)", "drop", "the engine mounts its own over it"),
    _rule(r"\.dockerenv", "drop", "made by the engine"),
    _rule(r"var/log/.+", "drop", "log"),
    _rule(r"var/cache/debconf/[^/]+-old", "drop", "back-up of an earlier state"),
    _rule(r"var/cache/(?!debconf/).+", "drop", "cache"),
    _rule(r"var/lib/apt/lists/auxfiles", "drop", "package lists", directories=True),
    _rule(r"var/lib/apt/(lists|periodic|mirrors)/.+", "drop", "package lists"),
    _rule(r"var/lib/dpkg/((triggers/)?[Ll]ock|lock-frontend|available)", "drop", "lock"),
    _rule(r"var/lib/dpkg/[^/]+-old", "drop", "back-up of an earlier state"),
    _rule(r"etc/\.pwd\.lock", "drop", "lock"),
    _rule(r"etc/(passwd|group|shadow|gshadow|subuid|subgid)-", "drop", "back-up of an earlier state"),
    _rule(r"(etc|var)/\.updated", "drop", "time stamp"),
    _rule(r"(.+/)?__pycache__(/.+)?", "drop", "byte-code has layers of its own", directories=True),
    _rule(r"(etc|var/lib/dbus)/machine-id", "empty", "made at first start"),
    _rule(r"var/lib/systemd/(random-seed|credential\.secret)", "drop", "made at first start"),
    _rule(r"etc/ssh/ssh_host_.+_key(\.pub)?", "refuse", "an SSH host key"),
    _rule(
        r"etc/ssl/(private/ssl-cert-snakeoil\.key|certs/ssl-cert-snakeoil\.pem)", "refuse", "a private key"
    ),
    _rule(r"etc/ssl/private/.+", "refuse", "a private key"),
)


def action_for(path: str, *, directory: bool = False) -> Action | None:
    """What becomes of a path that an installation wrote; None when it goes into the layer as it is.

    Args:
        path: Without leading slash.
        directory: True for a directory.

    Raises:
        BuildError: ``machine-secret`` for what every container of the image would share as its secret.
    """
    for rule in MACHINE_UNIQUE:
        if (directory and not rule.directories) or not rule.pattern.fullmatch(path):
            continue
        if rule.action == "refuse":
            raise BuildError(
                f"the packages made /{path}, {rule.why}: every container of this image would share it",
                code="machine-secret",
                do="Leave the package out, or let the container make it when it starts.",
            )
        return rule.action
    return None


def image_xattrs(pax_headers: Mapping[str, str]) -> Xattrs:
    """The extended attributes that belong to a file of an image.

    File capabilities and user attributes do; labels that the host's security modules put on
    (``security.selinux``) and notes of its overlay file system (``trusted.overlay.…``) do not.

    Args:
        pax_headers: A tar member's PAX records.
    """
    found = [
        (key.removeprefix(XATTR_PREFIX), value)
        for key, value in pax_headers.items()
        if key.startswith(XATTR_PREFIX)
    ]
    return tuple(
        sorted(pair for pair in found if pair[0] == "security.capability" or pair[0].startswith("user."))
    )
