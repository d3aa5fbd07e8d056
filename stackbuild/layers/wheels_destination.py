"""Where the ``installer`` library puts a wheel's files: a plan of tar entries that stay in their scheme."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from installer.destinations import WheelDestination
from installer.records import Hash, RecordEntry
from installer.scripts import Script
from installer.utils import Scheme, construct_record_file

from stackbuild.layers.paths import check_path
from stackbuild.layers.venv import VENV_PYTHON, VenvLayout
from stackbuild.layers.wheels_archive import Member, record_hash, refused

if TYPE_CHECKING:
    from installer.scripts import ScriptSection

_PLACEHOLDER = b"#!python"  # binary distribution format: "#!python" and "#!pythonw" name the interpreter
_SCRIPT_LIMIT = 64 << 20


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """One file of a wheel, where it will be in the image.

    Attributes:
        path: Without leading slash.
        content: What is in it.
        mode: Permission bits.
        wheel: Index of its wheel in the group.
    """

    path: str
    content: bytes | Member
    mode: int
    wheel: int


class PlanDestination(WheelDestination):
    """Collects the files of one wheel.

    Args:
        file: The wheel's file name, for messages.
        wheel: Index of the wheel in its group.
        layout: The virtual environment's places.
        distribution: The wheel's name, for its headers' folder.
    """

    def __init__(self, file: str, wheel: int, layout: VenvLayout, distribution: str) -> None:
        self._file = file
        self._wheel = wheel
        self._schemes = layout.schemes(distribution)
        self.files: list[PlannedFile] = []

    def write_script(self, name: str, module: str, attr: str, section: ScriptSection) -> RecordEntry:
        """Plan the launcher of an entry point."""
        if "/" in name or not name.isprintable():
            raise refused(self._file, f"the entry point {name!r} is not a file name")
        script_name, data = Script(name, module, attr, section).generate(VENV_PYTHON, "posix")
        return self._plan(Scheme("scripts"), script_name, data, executable=True)

    def write_file(
        self, scheme: Scheme, path: str | os.PathLike[str], stream: BinaryIO, is_executable: bool
    ) -> RecordEntry:
        """Plan one file; a script's ``#!python`` becomes the environment's Python."""
        name = os.fspath(path)
        content: bytes | Member = stream if isinstance(stream, Member) else stream.read()
        if scheme == "scripts":
            return self._plan(scheme, name, self._with_interpreter(content), executable=True)
        return self._plan(scheme, name, content, executable=is_executable)

    def finalize_installation(
        self, scheme: Scheme, record_file_path: str, records: Iterable[tuple[Scheme, RecordEntry]]
    ) -> None:
        """Plan RECORD, from what the wheel's own says and the files we add; in path order."""

        def prefix(of: Scheme) -> str | None:
            if self._schemes[of] == self._schemes[scheme]:
                return None
            return posixpath.relpath(f"/{self._schemes[of]}", f"/{self._schemes[scheme]}") + "/"

        with construct_record_file(list(records), prefix) as stream:
            self._plan(scheme, record_file_path, stream.read(), executable=False)

    def _plan(self, scheme: Scheme, path: str, content: bytes | Member, *, executable: bool) -> RecordEntry:
        check_path(path)  # a plain relative path cannot leave its scheme's folder
        full = f"{self._schemes[scheme]}/{path}"
        self.files.append(PlannedFile(full, content, 0o755 if executable else 0o644, self._wheel))
        if isinstance(content, Member):
            return RecordEntry(path, Hash("sha256", content.sha256), content.size)
        return RecordEntry(path, Hash("sha256", record_hash(hashlib.sha256(content).digest())), len(content))

    def _with_interpreter(self, content: bytes | Member) -> bytes | Member:
        if not isinstance(content, Member):
            return content
        with content.open() as stream:
            if stream.read(len(_PLACEHOLDER)) != _PLACEHOLDER:
                return content
        if content.size > _SCRIPT_LIMIT:
            raise refused(self._file, f"the script {content.name} is {content.size} bytes long")
        with content.open() as stream:
            stream.readline()
            rest = stream.read()
        return f"#!{VENV_PYTHON}\n".encode() + rest
