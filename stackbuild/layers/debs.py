"""The layer of Debian packages: apt itself installs them, and what it changed becomes the layer.

The packages come from a repository of exactly the locked ones inside a throwaway container of the locked
base, which has no network. apt is needed, since ``dpkg --force-depends`` ignores Pre-Depends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from stackbuild.engine.container import Container
from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.translate import disk_full, is_disk_full
from stackbuild.errors import BuildError
from stackbuild.layers.container_files import WORKSHOP, last_lines, put_files, take_members, workshop
from stackbuild.layers.debs_failure import install_failure
from stackbuild.layers.debs_repository import (
    LocalDeb,
    archive_name,
    exact_version,
    packages_index,
    require_as_locked,
    unreadable,
)
from stackbuild.layers.interface import layer_key
from stackbuild.layers.machine_unique import action_for, image_xattrs
from stackbuild.layers.tar_writer import MTIME, LayerTarWriter, Sink
from stackbuild.layers.tree import Additions, FileTree

_VERSION = 1

_ARCHIVES = f"{WORKSHOP}/cache/archives"  # apt's cache, filled before it runs
_SOURCES = f"{WORKSHOP}/sources.list"
_POLICY = "usr/sbin/policy-rc.d"

_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "DEBCONF_NONINTERACTIVE_SEEN": "true",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SOURCE_DATE_EPOCH": str(MTIME),
}
_APT = (
    *("apt-get", "--quiet", "--assume-yes", "--no-install-recommends"),
    *("-o", f"Dir::Etc::SourceList={_SOURCES}", "-o", "Dir::Etc::SourceParts=/dev/null"),
    *("-o", "Dir::Etc::Preferences=/dev/null", "-o", "Dir::Etc::PreferencesParts=/dev/null"),
    *("-o", f"Dir::State::Lists={WORKSHOP}/lists", "-o", f"Dir::Cache={WORKSHOP}/cache"),
    *("-o", "APT::Sandbox::User=root", "-o", "Acquire::Languages=none", "-o", "Dpkg::Use-Pty=0"),
    # A configuration file that the base has changed stays as the base has it; nobody is there to ask.
    *("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"),
    *("-o", "Dpkg::Options::=--force-unsafe-io"),
)
_REMOVED = re.compile(r"^(?:Remv|Purg) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class DebsMaker:
    """Makes the layer of Debian packages.

    Attributes:
        engine: Runs the container.
        image: Name or id of the base in the engine.
        base: What names the base on every machine: its diff IDs.
        debs: The locked packages, in name order, with their verified files.
        wanted: Names the spec asked for; for the history line.
    """

    engine: Engine = field(repr=False, compare=False)
    image: str
    base: tuple[str, ...]
    debs: tuple[LocalDeb, ...]
    wanted: tuple[str, ...] = ()
    group: str = "debs"

    @property
    def created_by(self) -> str:
        """One line for the image's history."""
        names = self.wanted or tuple(deb.name for deb, _ in self.debs)
        return f"apt-get install --no-download {' '.join(names)}"

    def key(self) -> str:
        """Hash of all that decides the layer's bytes."""
        packages = sorted((deb.name, deb.version, deb.architecture, deb.sha256) for deb, _ in self.debs)
        return layer_key("debs", _VERSION, [list(self.base), packages, MTIME])

    def make(self, sink: Sink, tree: FileTree) -> Additions:
        """Install the packages and write what that changed.

        Args:
            sink: Takes the tar.
            tree: The base's files.

        Raises:
            BuildError: ``deb-removes-package``, ``deb-install-failed``, ``machine-secret``.
            LockError: ``lock-invalid``: a file is another package than the lock says.
        """
        writer = LayerTarWriter(sink, tree, mirror=True)
        if not self.debs:
            return writer.close()
        with workshop(self.engine, self.image, _ENVIRONMENT) as container:
            own_policy = tree.get(_POLICY) is None
            _fill_cache(container, self.debs, policy=own_policy)
            _install(container, self.debs)
            _write_changes(container, writer, tree, without={_POLICY} if own_policy else set())
        return writer.close()


def _fill_cache(container: Container, debs: Sequence[LocalDeb], *, policy: bool) -> None:
    files = [(f"{_ARCHIVES}/{archive_name(deb)}", path) for deb, path in debs]
    put_files(
        container,
        [
            *files,
            (f"{_ARCHIVES}/partial/.keep", b""),
            (f"{WORKSHOP}/lists/partial/.keep", b""),
            (_SOURCES, f"deb [trusted=yes] file:{_ARCHIVES} ./\n".encode()),
            (f"{WORKSHOP}/read-control", _READ_CONTROL),
        ],
    )
    if policy:
        # invoke-rc.d(8): 101 means that no service may be started.
        put_files(container, [(f"{WORKSHOP}/policy-rc.d", b"#!/bin/sh\nexit 101\n")])
        _must(container, ["install", "-m", "755", f"{WORKSHOP}/policy-rc.d", f"/{_POLICY}"])
    names = [archive_name(deb) for deb, _ in debs]
    fields = container.exec(["sh", f"{WORKSHOP}/read-control", *names], workdir=_ARCHIVES)
    controls = fields.text.split("\0")
    if fields.exit_code != 0 or len(controls) != len(debs) + 1:
        raise unreadable(debs[min(len(controls), len(debs)) - 1][0], last_lines(controls[-1]))
    for (deb, _), control in zip(debs, controls, strict=False):
        require_as_locked(deb, control)
    index = packages_index(zip((deb for deb, _ in debs), controls, strict=False))
    put_files(container, [(f"{_ARCHIVES}/Packages", index.encode())])


# The control fields of each deb, with a NUL after each; the base's dpkg-deb knows its own compression.
_READ_CONTROL = b"""\
set -e
for deb; do dpkg-deb --field "$deb"; printf '\\0'; done
"""


def _install(container: Container, debs: Sequence[LocalDeb]) -> None:
    versions = [exact_version(deb) for deb, _ in debs]
    _must(container, [*_APT, "update"])
    planned = container.exec([*_APT, "--simulate", "install", *versions])
    removed = sorted(set(_REMOVED.findall(planned.text)))
    if removed:
        raise BuildError(
            f"installing the packages would remove {', '.join(removed)}",
            code="deb-removes-package",
            detail=last_lines(planned.text),
            do="Leave out the package that conflicts with it, or use another base.",
        )
    done = planned
    if planned.exit_code == 0:
        done = container.exec([*_APT, "--no-download", "--no-remove", "install", *versions])
    if done.exit_code != 0:
        raise _install_failed(done.text)


def _install_failed(text: str) -> BuildError:
    if is_disk_full(text):
        return disk_full("", last_lines(text))
    failure = install_failure(text)
    if failure.package:
        what = f"the package {failure.package} could not be installed"
        do = "Leave the package out of `apt`, or lock again for another version of it."
    else:
        what = "apt could not install the locked packages"
        do = "Lock again: `stackbuild lock`."
    return BuildError(what, code="deb-install-failed", detail=failure.detail, do=do)


def _must(container: Container, command: Sequence[str]) -> None:
    done = container.exec(command)
    if done.exit_code != 0:
        raise BuildError(
            f"{command[0]} failed in a container of the base",
            code="deb-install-failed",
            detail=last_lines(done.text),
            do="The base must be a Debian or Ubuntu with apt and dpkg.",
        )


def _write_changes(
    container: Container, writer: LayerTarWriter, tree: FileTree, *, without: set[str]
) -> None:
    present: set[str] = set()
    deleted: set[str] = set()
    kinds = [(path.lstrip("/"), kind) for path, kind in container.changes()]
    for path, kind in kinds:
        if f"/{path}" == WORKSHOP or path.startswith(f"{WORKSHOP.lstrip('/')}/") or path in without:
            continue
        (deleted if kind == "deleted" else present).add(path)
    deleted, replaced = _really_deleted(container, deleted)
    present |= replaced
    for folder in replaced:  # removed and made anew: whatever the base had in it is gone
        below = {path for path in tree if path.startswith(f"{folder}/")} - present
        deleted |= {path for path in below if path.rpartition("/")[0] not in below}
    whiteouts = sorted(path for path in deleted if action_for(path) is None)
    for path in whiteouts:
        writer.add_whiteout(path)
    for member, content in take_members(container, sorted(present)):
        path = member.name.rstrip("/")
        action = action_for(path, directory=member.isdir())
        if action == "drop":
            continue
        xattrs = image_xattrs(member.pax_headers)
        owner = (member.uid, member.gid)
        if member.isdir():
            writer.add_directory(path, member.mode, *owner, xattrs)
        elif member.issym():
            writer.add_symlink(path, member.linkname, *owner, xattrs)
        elif member.islnk():
            writer.add_hardlink(path, member.linkname)
        elif content is None or action == "empty":
            writer.add_file(path, b"", 0, member.mode, *owner, xattrs)
        else:
            writer.add_file(path, content, member.size, member.mode, *owner, xattrs)


def _really_deleted(container: Container, deleted: set[str]) -> tuple[set[str], set[str]]:
    """Split what the engine calls deleted: gone, and removed but made anew (an opaque directory)."""
    if not deleted:
        return set(), set()
    names = sorted(deleted)
    put_files(container, [(f"{WORKSHOP}/deleted", "".join(f"/{name}\0" for name in names).encode())])
    check = 'for path; do if [ -e "$path" ] || [ -L "$path" ]; then printf "%s\\0" "$path"; fi; done'
    found = container.exec(["xargs", "-0", "-a", f"{WORKSHOP}/deleted", "sh", "-c", check, "sh"])
    replaced = {name.lstrip("/") for name in found.text.split("\0") if name}
    return deleted - replaced, replaced
