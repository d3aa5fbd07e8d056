"""What should not be in an image: secrets, programs that give rights, leftovers, space that nobody can use."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from stackbuild.scan.contents.python import PythonContents
from stackbuild.scan.image_files import ImageFiles

_LARGE = 100_000_000
_GIVES_RIGHTS = 0o6000  # set-uid and set-gid
# Names under which tools keep keys and logins; a name alone is enough where the file is not empty.
_BY_NAME = (
    (re.compile(r"(?:^|/)\.ssh/id_[a-z0-9_]+$"), "private key"),
    (re.compile(r"(?:^|/)\.(?:netrc|pypirc|git-credentials)$"), "stored login"),
    (re.compile(r"(?:^|/)\.docker/config\.json$"), "registry login"),
    (re.compile(r"(?:^|/)\.aws/credentials$"), "AWS credentials"),
    (re.compile(r"(?:^|/)\.kube/config$"), "cluster login"),
    (
        re.compile(r"(?:^|/)(?:\.cache/huggingface|\.huggingface)/(?:token|stored_tokens)$"),
        "Hugging Face token",
    ),
    (re.compile(r"^etc/ssh/ssh_host_[a-z0-9]+_key$"), "host key"),
    (
        re.compile(r"(?:^|/)\.config/gcloud/(?:credentials\.db|application_default_credentials\.json)$"),
        "cloud login",
    ),
)
# What the names above end in: most files are told apart by this alone.
_ENDS = frozenset(
    {
        ".netrc",
        ".pypirc",
        ".git-credentials",
        "config.json",
        "credentials",
        "config",
        "token",
        "stored_tokens",
    }
    | {"credentials.db", "application_default_credentials.json"}
)
_VARIABLE = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|PRIVATE_KEY|CREDENTIALS)(?:_ID)?$"
)
_LEFTOVERS = (
    (re.compile(r"^var/lib/apt/lists/.*_(?:Packages|Sources|Translation-\w+)"), "apt's package lists"),
    (re.compile(r"^var/cache/apt/(?:archives/.*\.deb|.*\.bin)$"), "apt's cache"),
    (re.compile(r"^var/cache/(?:yum|dnf)/"), "the rpm tools' cache"),
    (re.compile(r"^(?:root|home/[^/]+)/\.cache/pip/"), "pip's cache"),
    (re.compile(r"^(?:root|home/[^/]+)/\.cache/uv/"), "uv's cache"),
    (re.compile(r"^(?:root|home/[^/]+)/\.cache/(?!pip/|uv/)"), "a user's cache"),
    (re.compile(r"(?:^|/)(?:mini|ana|mamba)?(?:conda|forge)\d?/pkgs/"), "conda's package cache"),
    (re.compile(r"^(?:var/)?tmp/"), "temporary files"),
)
_LEFTOVER_FOLDERS = ("var/lib/apt/", "var/cache/", "var/tmp/", "tmp/", "root/", "home/")


@dataclass(frozen=True, slots=True)
class Secret:
    """A key, token or password; its value is never kept.

    Attributes:
        kind: What it is.
        where: A path, or a variable of the image's environment.
        layer: The layer that holds it; -1 for the configuration.
        hidden: True where a later layer deletes or replaces the file: whoever pulls the image still has it.
    """

    kind: str
    where: str
    layer: int
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Leftover:
    """What package managers left behind: kind, number of files and bytes."""

    kind: str
    files: int
    size: int
    example: str


@dataclass(frozen=True, slots=True)
class FileSize:
    """A large file, or one with the set-uid or set-gid bit."""

    path: str
    size: int
    layer: int
    mode: int = 0


def secrets(files: ImageFiles, python: PythonContents) -> tuple[Secret, ...]:
    """Secrets by content, name and variable, those that are hidden among them.

    A file that a RECORD confirms came with a published package: what looks like a key there is a sample.
    """
    found: dict[tuple[str, int], Secret] = {}
    for hidden, facts in ((False, files.facts("secret")), (True, files.hidden_facts("secret"))):
        for path, layer, kinds in facts:
            owner = python.owner(path) if not hidden else None
            if owner is not None and path not in owner.record.changed:
                continue
            found[path, layer] = Secret(", ".join(kinds), path, layer, hidden)
    for number, scanned in enumerate(files.layers):
        for path, entry in scanned.entries.items():
            name = path[path.rfind("/") + 1 :]
            if name not in _ENDS and not name.startswith(("id_", "ssh_host_")):
                continue
            if entry.kind != "file" or not entry.size or (path, number) in found:
                continue
            kind = next((kind for pattern, kind in _BY_NAME if pattern.search(path)), None)
            if kind is not None:
                placed = files.get(path)
                found[path, number] = Secret(kind, path, number, placed is None or placed.layer != number)
    variables = (
        Secret("variable", name, -1)
        for name, value in files.description.environment.items()
        if value and _VARIABLE.search(name.upper())
    )
    return tuple(sorted([*found.values(), *variables], key=lambda item: (item.layer, item.where)))


def leftovers(files: ImageFiles) -> tuple[Leftover, ...]:
    """Caches and lists that nothing in a container uses, largest first."""
    sizes: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for path, placed in files.placed():
        if (path.startswith(_LEFTOVER_FOLDERS) or "/pkgs/" in path) and placed.entry.kind == "file":
            kind = next((kind for pattern, kind in _LEFTOVERS if pattern.search(path)), None)
            if kind is not None:
                sizes[kind].append((placed.entry.size, path))
    made = (
        Leftover(kind, len(listed), sum(size for size, _ in listed), max(listed)[1])
        for kind, listed in sizes.items()
    )
    return tuple(sorted(made, key=lambda item: (-item.size, item.kind)))


def large_files(files: ImageFiles) -> tuple[FileSize, ...]:
    """Files of 100 MB and more, largest first."""
    found = (
        FileSize(path, placed.entry.size, placed.layer)
        for path, placed in files.placed()
        if placed.entry.size >= _LARGE and placed.entry.kind == "file"
    )
    return tuple(sorted(found, key=lambda item: (-item.size, item.path)))


def privileged_files(files: ImageFiles) -> tuple[FileSize, ...]:
    """Programs with the set-uid or set-gid bit, by path."""
    return tuple(sorted(_privileged(files), key=lambda item: item.path))


def _privileged(files: ImageFiles) -> Iterator[FileSize]:
    for path, placed in files.placed():
        if placed.entry.mode & _GIVES_RIGHTS and placed.entry.kind == "file":
            yield FileSize(path, placed.entry.size, placed.layer, placed.entry.mode)
