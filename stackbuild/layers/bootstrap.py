"""The root file system of a bootstrapped base: mmdebstrap over exactly the locked debs, re-tarred by us.

mmdebstrap's own tar varies with its version (docker-notes, "Traps"); the tree does not. So the tree is
written again by :class:`LayerTarWriter`, in path order, without what ``machine_unique`` names.
"""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from stackbuild.errors import BuildError, NotJudgedError, foreign_architecture
from stackbuild.layers.debs_failure import install_failure
from stackbuild.layers.debs_repository import (
    LocalDeb,
    archive_name,
    exact_version,
    packages_index,
    read_control_fields,
)
from stackbuild.layers.interface import layer_key
from stackbuild.layers.machine_unique import action_for, image_xattrs
from stackbuild.layers.tar_writer import MTIME, LayerTarWriter, Sink
from stackbuild.layers.tree import FileTree
from stackbuild.lock.model import LockedDeb
from stackbuild.store.disk import disk_full_as_error
from stackbuild.store.scratch import Scratch, scratch_folder

_VERSION = 1

# Manuals and translations stay out, licences stay in. The directories man1 … man9 stay too: the
# maintainer scripts of some packages link into them.
DPKG_CONFIGURATION = """\
path-exclude=/usr/share/man/*/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
"""

_SOURCES_PATH = "etc/apt/sources.list"
_DPKG_CONFIGURATION_PATH = "etc/dpkg/dpkg.cfg.d/stackbuild"
# What mmdebstrap writes for its own run: its sources (a folder of this host) and its settings.
_SCAFFOLDING = (
    "etc/apt/sources.list.d/",
    "etc/apt/apt.conf.d/99mmdebstrap",
    "etc/dpkg/dpkg.cfg.d/99mmdebstrap",
)

# /bin, /sbin and /lib are links from the start, so that the package usr-is-merged can be used and
# usrmerge, which needs perl, is not (release notes of Debian 12, 5.1.2).
_MERGED_USR = 'cd "$1" && mkdir -p usr/bin usr/sbin usr/lib && ln -s usr/bin usr/sbin usr/lib .'
_LIB64 = " && mkdir -p usr/lib64 && ln -s usr/lib64 ."

# What this machine runs itself: the kernel's name for it, and Debian's.
_NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}
# mmdebstrap's words when it has no way to run the programs of another architecture.
_CANNOT_RUN = ("install arch-test", "can neither be executed natively nor via qemu")

_DISK_FULL = "No space left on device"
_GRACE = 30.0  # seconds that mmdebstrap gets to unmount and clean up


def bootstrap_key(debs: Sequence[LockedDeb], suite: str, sources: str) -> str:
    """Hash of all that decides the root file system's bytes; it needs no deb at hand."""
    packages = sorted((deb.name, deb.version, deb.architecture, deb.sha256) for deb in debs)
    return layer_key("bootstrap", _VERSION, [packages, suite, sources, DPKG_CONFIGURATION, MTIME])


def mmdebstrap_program() -> str:
    """Where mmdebstrap is.

    Raises:
        NotJudgedError: ``mmdebstrap-missing``.
    """
    program = shutil.which("mmdebstrap")
    if program is None:
        raise NotJudgedError(
            "mmdebstrap, which makes the bootstrapped base, is not installed",
            code="mmdebstrap-missing",
            do="Run: apt-get install mmdebstrap (with sudo).",
        )
    return program


def bootstrap_rootfs(debs: Sequence[LocalDeb], suite: str, sources: str, sink: Sink) -> FileTree:
    """Write the root file system of exactly these debs as one tar; no network is used.

    Args:
        debs: Every locked deb, in name order, with its verified file.
        suite: The distribution's suite, for messages.
        sources: The text of the image's ``/etc/apt/sources.list``.
        sink: Takes the tar.

    Returns:
        What the tar holds.

    Raises:
        NotJudgedError: ``mmdebstrap-missing``; ``bootstrap-not-permitted`` for a user who is not root on a
            host without user namespaces.
        NotJudgedError: ``foreign-architecture``: this machine cannot run the debs' programs.
        BuildError: ``bootstrap-failed``, with the last lines; ``disk-full``; ``machine-secret``.
    """
    program = mmdebstrap_program()
    with (
        disk_full_as_error(Path(tempfile.gettempdir())),
        scratch_folder() as scratch,
    ):
        # In the unshare mode mmdebstrap reads it as another user.
        scratch.path.chmod(0o755)
        repository = _write_repository(debs, scratch.path / "repository")
        raw = scratch.path / "root.tar"
        _run(_command(program, debs, repository), raw, scratch, suite)
        with raw.open("rb") as stream:
            return retar_rootfs(stream, sources, sink)


def retar_rootfs(stream: IO[bytes], sources: str, sink: Sink) -> FileTree:
    """Write a root file system's tar anew: sorted, constant times, without what is no part of an image.

    Args:
        stream: The tar, seekable.
        sources: The text of ``/etc/apt/sources.list``.
        sink: Takes the new tar.

    Returns:
        What the new tar holds.
    """
    writer = LayerTarWriter(sink, FileTree(), mirror=True)
    added = {_SOURCES_PATH: sources.encode(), _DPKG_CONFIGURATION_PATH: DPKG_CONFIGURATION.encode()}
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        members = {
            path: member for member in archive if (path := _path_of(member.name)) and path not in added
        }
        first_name: dict[str, str] = {}  # path of a file's content in the tar -> its first name in the layer
        for path in sorted({*members, *added}):
            if path in added:
                writer.add_file(path, added[path], len(added[path]), 0o644)
            elif path.startswith(_SCAFFOLDING):
                continue
            else:
                _copy_member(writer, archive, path, members, first_name)
    return FileTree().with_layer(writer.close())


def _copy_member(
    writer: LayerTarWriter,
    archive: tarfile.TarFile,
    path: str,
    members: dict[str, tarfile.TarInfo],
    first_name: dict[str, str],
) -> None:
    member = members[path]
    action = action_for(path, directory=member.isdir())
    if action == "drop":
        return
    xattrs = image_xattrs(member.pax_headers)
    if member.isdir():
        writer.add_directory(path, member.mode, member.uid, member.gid, xattrs)
    elif member.issym():
        writer.add_symlink(path, member.linkname, member.uid, member.gid)
    elif member.isreg() or member.islnk():
        content = _path_of(member.linkname) if member.islnk() else path
        if content in first_name:
            writer.add_hardlink(path, first_name[content])
            return
        first_name[content] = path
        member = members[content]
        source = archive.extractfile(member)
        if source is None or action == "empty":
            writer.add_file(path, b"", 0, member.mode, member.uid, member.gid, xattrs)
        else:
            writer.add_file(path, source, member.size, member.mode, member.uid, member.gid, xattrs)


def _path_of(name: str) -> str:
    path = PurePosixPath(name).as_posix().lstrip("/")
    return "" if path == "." else path


def _write_repository(debs: Sequence[LocalDeb], folder: Path) -> Path:
    folder.mkdir(mode=0o755)
    controls = read_control_fields(debs)
    for deb, path in debs:
        # Copied, not linked: the store may lie where mmdebstrap's user cannot read.
        target = folder / archive_name(deb)
        shutil.copyfile(path, target)
        target.chmod(0o644)
    index = packages_index(zip((deb for deb, _ in debs), controls, strict=True))
    (folder / "Packages").write_text(index, encoding="utf-8", errors="surrogateescape")
    return folder


def _command(program: str, debs: Sequence[LocalDeb], repository: Path) -> list[str]:
    architectures = {deb.architecture for deb, _ in debs} - {"all"}
    # Said for another architecture alone: mmdebstrap then looks for emulation.
    foreign = architectures - {_NATIVE.get(platform.machine())}
    return [
        program,
        "--mode=root" if os.geteuid() == 0 else "--mode=unshare",
        # Essential packages first, then all others by exact version: nothing is left to a priority.
        "--variant=essential",
        "--format=tar",
        *(f"--architectures={name}" for name in sorted(foreign)),
        "--include=" + ",".join(exact_version(deb) for deb, _ in debs),
        f"--setup-hook={_MERGED_USR}{_LIB64 if 'amd64' in architectures else ''}",
        '--aptopt=APT::Sandbox::User "root"',
        '--aptopt=Acquire::Languages "none"',
        *(f"--dpkgopt={line}" for line in DPKG_CONFIGURATION.splitlines()),
        "",  # no suite: the repository has no Release file that could name one
        "-",
        f"deb [trusted=yes] copy://{repository} ./",
    ]


def _run(command: Sequence[str], output: Path, scratch: Scratch, suite: str) -> None:
    """Run mmdebstrap to its end; an interrupt lets it unmount and clean up first."""
    log = scratch.path / "log"
    # A closed environment: no proxy, no apt settings and no locale of this host reach the tree.
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": os.environ.get("HOME", "/"),
        "TMPDIR": str(scratch.path),
        "SOURCE_DATE_EPOCH": str(MTIME),
    }
    with output.open("wb") as stdout, log.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            umask=0o022,
            start_new_session=True,
            # Where this process is killed, it works on in the folder for a while.
            pass_fds=(scratch.descriptor,),
        )
        try:
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            raise
    if code != 0:
        raise failure_of(log.read_text(encoding="utf-8", errors="replace"), suite)


def failure_of(log: str, suite: str) -> BuildError | NotJudgedError:
    """What mmdebstrap's log says went wrong.

    Args:
        log: Everything it wrote.
        suite: The distribution's suite.
    """
    failure = install_failure(log)
    where = f"bootstrap {suite}"
    if _DISK_FULL in log:
        return BuildError(
            "the disk is full",
            code="disk-full",
            where=where,
            detail=next(line for line in log.splitlines() if _DISK_FULL in line)[:300],
            do="Free some space where temporary files go (TMPDIR) and run again.",
        )
    if any(words in log for words in _CANNOT_RUN):
        return foreign_architecture(failure.detail, where)
    if os.geteuid() != 0 and any(word in log for word in ("unshare", "newuidmap", "subuid")):
        return NotJudgedError(
            "the base cannot be made: this user is not root and has no user namespaces",
            code="bootstrap-not-permitted",
            where=where,
            detail=failure.detail,
            do="Run with sudo, or: apt-get install uidmap, and give the user a range in /etc/subuid and /etc/subgid.",
        )
    if failure.package:
        what = f"the package {failure.package} could not be installed into the base"
    else:
        what = "the base could not be made from its locked packages"
    return BuildError(
        what,
        code="bootstrap-failed",
        where=where,
        detail=failure.detail,
        do="See the lines above; `stackbuild lock --upgrade` takes newer packages.",
    )
