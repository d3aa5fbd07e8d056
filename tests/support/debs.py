"""Small Debian packages and an apt repository of them, signed where wanted, served on loopback."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from tests.support.loopback import LoopbackServer, Request, Response

_MOMENT = 1_700_000_000


def make_deb(
    directory: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, bytes | str] | None = None,
    executables: Sequence[str] = (),
    control: Sequence[str] = (),
    scripts: Mapping[str, str] | None = None,
    architecture: str = "all",
) -> Path:
    """Write a Debian package and return its path; equal arguments give equal bytes.

    Args:
        directory: Where the deb goes; made when absent.
        name: Package name.
        version: Debian version; a colon is left out of the file's name, as dpkg does.
        files: Absolute path to content; default: ``/usr/share/doc/NAME/README``.
        executables: Those of ``files`` that are executable.
        control: Further control lines, for example ``Depends: libc6`` or ``Conflicts: other``.
        scripts: Maintainer scripts by name (``postinst`` …); their text needs its ``#!`` line.
        architecture: ``all``, ``amd64`` or ``arm64``.
    """
    if files is None:
        files = {f"/usr/share/doc/{name}/README": f"{name} {version}\n"}
    fields = [
        f"Package: {name}",
        f"Version: {version}",
        f"Architecture: {architecture}",
        "Maintainer: Tests <tests@example.org>",
        "Section: misc",
        "Priority: optional",
        *control,
        f"Description: {name}, made by a test",
        "",
    ]
    inner = {"control": ("\n".join(fields).encode(), 0o644)}
    inner |= {script: (text.encode(), 0o755) for script, text in sorted((scripts or {}).items())}
    payload = {
        path.lstrip("/"): (
            content.encode() if isinstance(content, str) else content,
            0o755 if path in executables else 0o644,
        )
        for path, content in sorted(files.items())
    }
    directory.mkdir(parents=True, exist_ok=True)
    deb = directory / f"{name}_{version.split(':')[-1]}_{architecture}.deb"
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", _tar(inner)),
        ("data.tar.gz", _tar(payload)),
    ]
    deb.write_bytes(_ar(members))
    return deb


@dataclass(frozen=True)
class SigningKey:
    """A throwaway OpenPGP key: ``public`` is its armoured public part, ``home`` the GnuPG home."""

    home: Path
    public: bytes

    @classmethod
    def make(cls, home: Path) -> SigningKey:
        """Make a key in a new GnuPG home."""
        home.mkdir(parents=True, mode=0o700)
        identity = "Tests <tests@example.org>"
        _gpg(home, "--passphrase", "", "--quick-generate-key", identity, "ed25519", "sign", "never")
        return cls(home, _gpg(home, "--armor", "--export"))

    @property
    def sha256(self) -> str:
        """What ``apt-sources[].key-sha256`` of a spec names."""
        return hashlib.sha256(self.public).hexdigest()

    def clear_sign(self, text: bytes) -> bytes:
        """The inline-signed form of ``text``, as InRelease is."""
        return _gpg(self.home, "--armor", "--clear-sign", input_=text)


class AptRepository:
    """An apt repository in a folder, with one suite and the component ``main``.

    Args:
        root: The folder; ``dists`` and ``pool`` go below it.
        suite: Name of the suite.
        key: Signs InRelease; without it there is only a Release file (``[trusted=yes]`` needed).
    """

    def __init__(self, root: Path, suite: str = "stable", *, key: SigningKey | None = None) -> None:
        self._root = root
        self._suite = suite
        self._key = key
        self._added: list[tuple[Path, str]] = []

    def add(self, deb: Path) -> None:
        """Take a deb into the pool; ``write`` makes the lists."""
        control = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True)
        target = self._root / "pool" / "main" / deb.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(deb.read_bytes())
        self._added.append((target, control.stdout.strip()))

    def forget(self, deb_name: str) -> None:
        """Drop a deb from pool and lists, as mirrors do with superseded versions."""
        (self._root / "pool" / "main" / deb_name).unlink()
        self._added = [(path, control) for path, control in self._added if path.name != deb_name]

    def write(self) -> None:
        """Write Packages and the (signed) Release of the suite."""
        entries: dict[str, list[str]] = {"amd64": [], "arm64": []}
        for path, control in sorted(self._added):
            content = path.read_bytes()
            entry = "\n".join(
                [
                    control,
                    f"Filename: {path.relative_to(self._root)}",
                    f"Size: {len(content)}",
                    f"MD5sum: {hashlib.md5(content).hexdigest()}",
                    f"SHA256: {hashlib.sha256(content).hexdigest()}",
                    "",
                ]
            )
            for architecture, listed in entries.items():
                if f"\nArchitecture: {architecture}\n" in control or "\nArchitecture: all\n" in control:
                    listed.append(entry)
        dist = self._root / "dists" / self._suite
        release = [
            "Origin: tests",
            f"Suite: {self._suite}",
            f"Codename: {self._suite}",
            f"Date: {formatdate(_MOMENT, usegmt=True).replace('GMT', 'UTC')}",
            "Architectures: amd64 arm64 all",
            "Components: main",
            "SHA256:",
        ]
        for architecture, listed in entries.items():
            packages = dist / "main" / f"binary-{architecture}" / "Packages"
            packages.parent.mkdir(parents=True, exist_ok=True)
            packages.write_text("\n".join(listed))
            content = packages.read_bytes()
            release.append(
                f" {hashlib.sha256(content).hexdigest()} {len(content)} {packages.relative_to(dist)}"
            )
        text = ("\n".join(release) + "\n").encode()
        (dist / "Release").write_bytes(text)
        if self._key is not None:
            (dist / "InRelease").write_bytes(self._key.clear_sign(text))
            (self._root / "key.asc").write_bytes(self._key.public)

    def server(self) -> LoopbackServer:
        """A server of the repository, to be used as a context manager; its ``url`` is the repository's."""

        def answer(request: Request) -> Response:
            file = (self._root / request.path.lstrip("/")).resolve()
            if not file.is_relative_to(self._root.resolve()) or not file.is_file():
                return Response(404)
            return Response(body=file.read_bytes())

        return LoopbackServer(answer)


def _gpg(home: Path, *arguments: str, input_: bytes | None = None) -> bytes:
    command = ["gpg", "--batch", "--no-tty", "--quiet", "--pinentry-mode", "loopback", *arguments]
    environment = {**os.environ, "GNUPGHOME": str(home)}
    done = subprocess.run(command, input=input_, env=environment, check=True, capture_output=True)
    return done.stdout


def _tar(files: Mapping[str, tuple[bytes, int]]) -> bytes:
    """A gzipped tar of files and the directories above them, with fixed times and root as owner."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        seen: set[str] = set()
        for path, (content, mode) in files.items():
            parts = path.split("/")
            for depth in range(len(parts)):
                directory = "./" + "/".join(parts[:depth])
                if directory in seen:
                    continue
                seen.add(directory)
                entry = tarfile.TarInfo(directory)
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, _MOMENT
                archive.addfile(entry)
            entry = tarfile.TarInfo("./" + path)
            entry.size, entry.mode, entry.mtime = len(content), mode, _MOMENT
            archive.addfile(entry, io.BytesIO(content))
    return compress(raw.getvalue())


def compress(content: bytes, level: int = 6) -> bytes:
    """gzip without a time stamp."""
    return gzip.compress(content, compresslevel=level, mtime=0)


def _ar(members: Sequence[tuple[str, bytes]]) -> bytes:
    parts = [b"!<arch>\n"]
    for name, content in members:
        parts.append(f"{name:<16}{_MOMENT:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode())
        parts.append(content + (b"\n" if len(content) % 2 else b""))
    return b"".join(parts)
