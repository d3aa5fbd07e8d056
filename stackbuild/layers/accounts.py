"""Editing a base's own account files, as pure functions on their text.

Formats: passwd(5), group(5), shadow(5), gshadow(5). Lines that are malformed are kept and not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from stackbuild.errors import BuildError
from stackbuild.layers.tar_writer import MTIME
from stackbuild.layers.tree import FileTree
from stackbuild.spec.model import UserSpec

_LAST_CHANGE = MTIME // 86_400  # days since 1970, so that shadow does not hold the day of the build
_SHELL = "/bin/sh"


@dataclass(frozen=True)
class Accounts:
    """The texts of the account files; None where the base has no such file."""

    passwd: str = ""
    group: str = ""
    shadow: str | None = None
    gshadow: str | None = None


@dataclass(frozen=True)
class User:
    """One line of passwd."""

    name: str
    uid: int
    gid: int
    home: str


def accounts_of(tree: FileTree) -> Accounts:
    """The account files of a tree, as they are there."""

    def text(path: str) -> str | None:
        entry = tree.get(path)
        return entry.text if entry is not None and entry.kind == "file" else None

    return Accounts(
        text("etc/passwd") or "", text("etc/group") or "", text("etc/shadow"), text("etc/gshadow")
    )


def users(passwd: str) -> Iterator[User]:
    """The well-formed lines of a passwd text, in order; the first of a name or uid counts."""
    for line in passwd.split("\n"):
        fields = line.split(":")
        if len(fields) == 7 and fields[0] and fields[2].isdecimal() and fields[3].isdecimal():
            yield User(fields[0], int(fields[2]), int(fields[3]), fields[5])


def groups(group: str) -> Iterator[tuple[str, int]]:
    """Name and gid of the well-formed lines of a group text, in order."""
    for line in group.split("\n"):
        fields = line.split(":")
        if len(fields) == 4 and fields[0] and fields[2].isdecimal():
            yield fields[0], int(fields[2])


def with_user(accounts: Accounts, wanted: UserSpec) -> tuple[Accounts, User]:
    """Add the user and its group where the base lacks them.

    Args:
        accounts: The base's texts.
        wanted: The spec's user. Without a gid, the group has the user's name and its uid as gid.

    Returns:
        The new texts (the same where the base has that very user) and the user as it is in them.

    Raises:
        BuildError: ``uid-taken`` or ``gid-taken``, naming who has the uid, gid or name.
    """
    existing = _existing_user(accounts, wanted)
    if existing is not None:
        return _with_home(accounts, existing, wanted)
    accounts, gid = _with_group(accounts, wanted)
    user = User(wanted.name, wanted.uid, gid, wanted.home or f"/home/{wanted.name}")
    passwd = f"{user.name}:x:{user.uid}:{user.gid}::{user.home}:{_SHELL}"
    changed = replace(accounts, passwd=_with_line(accounts.passwd, passwd))
    if changed.shadow is not None and not _has_name(changed.shadow, user.name):
        changed = replace(
            changed, shadow=_with_line(changed.shadow, f"{user.name}:!:{_LAST_CHANGE}:0:99999:7:::")
        )
    return changed, user


def owner_ids(owner: str | None, passwd: str, group: str) -> tuple[int, int]:
    """The uid and gid of an owner as a spec writes it.

    Args:
        owner: ``USER``, ``USER:GROUP`` or numbers in place of either; None is root. Without a group it is the
            user's own in passwd, else the group whose gid is the uid.
        passwd: The image's passwd text.
        group: The image's group text.

    Raises:
        BuildError: ``owner-unknown`` for a name the image does not have.
    """
    if owner is None:
        return 0, 0
    user_text, colon, group_text = owner.partition(":")
    match = next((u for u in users(passwd) if user_text in (u.name, str(u.uid))), None)
    if match is None and not user_text.isdecimal():
        raise _unknown_owner("user", user_text, [u.name for u in users(passwd)])
    uid = match.uid if match else int(user_text)
    if not colon:
        return uid, match.gid if match else uid
    if group_text.isdecimal():
        return uid, int(group_text)
    gid = next((gid for name, gid in groups(group) if name == group_text), None)
    if gid is None:
        raise _unknown_owner("group", group_text, [name for name, _ in groups(group)])
    return uid, gid


def _existing_user(accounts: Accounts, wanted: UserSpec) -> User | None:
    for user in users(accounts.passwd):
        if user.name == wanted.name and user.uid == wanted.uid:
            if wanted.gid is not None and user.gid != wanted.gid:
                raise BuildError(
                    f"the base already has the user {user.name} with gid {user.gid}, not {wanted.gid}",
                    code="gid-taken",
                    do="Leave out image.user.gid, or choose another name and uid.",
                )
            return user
        if user.name == wanted.name:
            raise BuildError(
                f"the base already has a user named {user.name}, with uid {user.uid} and not {wanted.uid}",
                code="uid-taken",
                do=f"Set image.user.uid to {user.uid}, or choose another name.",
            )
        if user.uid == wanted.uid:
            raise BuildError(
                f"uid {wanted.uid} is taken by {user.name} in the base, so {wanted.name} cannot have it",
                code="uid-taken",
                do=f"Choose another image.user.uid, or the name {user.name}.",
            )
    return None


def _with_group(accounts: Accounts, wanted: UserSpec) -> tuple[Accounts, int]:
    gid = wanted.gid if wanted.gid is not None else wanted.uid
    for name, taken in groups(accounts.group):
        if taken == gid and (name == wanted.name or wanted.gid is not None):
            return accounts, gid  # the very group, or one that the spec chose by its number
        if taken == gid:
            raise BuildError(
                f"gid {gid} is taken by the group {name} in the base, so {wanted.name} cannot have it",
                code="gid-taken",
                do=f"Set image.user.gid: to {gid} to use the group {name}, or to a free one.",
            )
        if name == wanted.name:
            raise BuildError(
                f"the base already has a group named {name}, with gid {taken} and not {gid}",
                code="gid-taken",
                do=f"Set image.user.gid to {taken}, or choose another name.",
            )
    changed = replace(accounts, group=_with_line(accounts.group, f"{wanted.name}:x:{gid}:"))
    if changed.gshadow is not None and not _has_name(changed.gshadow, wanted.name):
        changed = replace(changed, gshadow=_with_line(changed.gshadow, f"{wanted.name}:!::"))
    return changed, gid


def _with_home(accounts: Accounts, user: User, wanted: UserSpec) -> tuple[Accounts, User]:
    """A reused user keeps its line, but for the home that the spec asks for."""
    if wanted.home is None or wanted.home == user.home:
        return accounts, user
    lines = accounts.passwd.split("\n")
    for number, line in enumerate(lines):
        fields = line.split(":")
        if len(fields) == 7 and fields[0] == user.name and fields[2] == str(user.uid):
            fields[5] = wanted.home
            lines[number] = ":".join(fields)
            break
    return replace(accounts, passwd="\n".join(lines)), replace(user, home=wanted.home)


def _with_line(text: str, line: str) -> str:
    end = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{end}{line}\n"


def _has_name(text: str, name: str) -> bool:
    return any(line.split(":", 1)[0] == name for line in text.split("\n"))


def _unknown_owner(what: str, name: str, known: list[str]) -> BuildError:
    return BuildError(
        f"the image has no {what} named {name!r}",
        code="owner-unknown",
        detail=f"it has: {', '.join(known[:40])}",
        do="Add it as image.user, or give a number.",
    )
