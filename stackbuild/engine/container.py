"""One container: start, exec, files in and out, changes, end."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import docker
import docker.errors
import requests.exceptions

from stackbuild.engine.models import ExecResult
from stackbuild.engine.translate import disk_full, engine_died, is_disk_full, translated
from stackbuild.errors import NotJudgedError, foreign_architecture

_KINDS = {0: "changed", 1: "added", 2: "deleted"}
_CHUNK = 1 << 20
_FOREIGN = "exec format error"
_NOT_STARTED = 126  # exit code of a command that the engine could not start
_GRACE = 2  # seconds that the engine may take to notice that a container has ended


class Container:
    """A created container; :meth:`Engine.container` makes and removes it."""

    def __init__(self, api: docker.APIClient, container_id: str) -> None:
        self._api = api
        self.id = container_id

    def start(self) -> None:
        """Start it.

        Raises:
            NotJudgedError: ``container-start-failed`` or ``foreign-architecture``, with the engine's own words
                as ``detail``.
        """
        with translated("start a container"):
            try:
                self._api.start(self.id)
            except docker.errors.APIError as error:
                message = str(error.explanation or error)
                if is_disk_full(message):
                    raise disk_full("", message) from error
                if _FOREIGN in message:
                    raise foreign_architecture(message.strip()) from error
                raise NotJudgedError(
                    "The container could not be started.",
                    code="container-start-failed",
                    detail=message.strip(),
                ) from error

    def attach(self) -> Iterator[tuple[bytes, bytes]]:
        """Connect to its output now; iterate to get (stdout, stderr) chunks as they come, until it ends.

        Called before :meth:`start` it misses nothing and, unlike :meth:`logs`, it needs no log driver
        that can be read back.
        """
        with translated("attach to a container"):
            chunks = self._api.attach(self.id, stdout=True, stderr=True, stream=True, demux=True)
        return self._attached(chunks)

    def _attached(self, chunks: Iterator[tuple[bytes | None, bytes | None]]) -> Iterator[tuple[bytes, bytes]]:
        with translated("read a container's output"):
            for stdout, stderr in chunks:
                yield stdout or b"", stderr or b""

    def out_of_memory(self) -> bool:
        """True when the kernel killed something in it for want of memory."""
        with translated("look at a container"):
            return bool(self._api.inspect_container(self.id)["State"].get("OOMKilled"))

    def exec(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        user: str = "",
        workdir: str | None = None,
        limit: float | None = None,
    ) -> ExecResult:
        """Run a command in the running container and wait for its end.

        Args:
            argv: The command; never a shell string.
            environment: Added to the container's.
            user: A name or uid; the image's when empty.
            workdir: The image's when None.
            limit: Seconds; past it the whole container is killed, since an exec cannot be.

        Returns:
            Exit code and output; a non-zero exit code is not an error.

        Raises:
            NotJudgedError: ``step-timeout`` past ``limit``; ``foreign-architecture`` or ``container-ended`` when
                the container does not run any more.
        """
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            with suppress(NotJudgedError):  # whoever waits for the command meets an engine that is gone, too
                self.kill()

        timer = threading.Timer(limit, expire) if limit is not None else None
        with translated(f"run {argv[0]} in a container"):
            try:
                made = self._api.exec_create(
                    self.id, list(argv), environment=dict(environment or {}), user=user, workdir=workdir
                )
                if timer is not None:
                    timer.start()
                output = self._api.exec_start(made["Id"])
                exit_code = self._api.exec_inspect(made["Id"])["ExitCode"]
            except docker.errors.APIError as error:
                if not expired.is_set():
                    if self._has_ended():
                        raise self._ended(argv[0]) from error
                    raise
                output, exit_code = b"", None
            finally:
                if timer is not None:
                    timer.cancel()
        if expired.is_set():
            raise NotJudgedError(
                f"{argv[0]} ran longer than {limit:g} seconds and was stopped.",
                code="step-timeout",
                detail=output.decode(errors="replace")[-4000:],
            )
        if exit_code is None:
            raise engine_died(f"run {argv[0]} in a container")
        if exit_code == _NOT_STARTED and self._has_ended():
            raise self._ended(argv[0])
        return ExecResult(int(exit_code), output)

    def _has_ended(self) -> bool:
        """True when it does not run any more, or ends right now."""
        try:
            self._api.wait(self.id, timeout=_GRACE)
        except (requests.exceptions.Timeout, requests.exceptions.ConnectionError, docker.errors.APIError):
            return False  # it runs, or the engine is gone: the failure that led here says more
        return True

    def _ended(self, program: str) -> NotJudgedError:
        """The error for a container that was meant to run on; its own words say why it did not."""
        said = self.logs().decode(errors="replace").strip()
        if _FOREIGN in said:
            return foreign_architecture(said[-1000:])
        return NotJudgedError(
            f"The container ended before {program} could run in it.",
            code="container-ended",
            detail=said[-1000:],
            do="Look whether something stops containers on this engine, then run the same command again.",
        )

    def put(self, path: str, archive: bytes | Iterable[bytes]) -> None:
        """Unpack a tar into the folder ``path``, which must exist; not for read-only roots or tmpfs."""
        with translated(f"copy files to {path} of a container"):
            self._api.put_archive(self.id, path, archive if isinstance(archive, bytes) else iter(archive))

    def get(self, path: str) -> Iterator[bytes]:
        """The file or folder ``path`` as a tar stream; its names start with the last part of ``path``."""
        with translated(f"copy {path} out of a container"):
            stream, _ = self._api.get_archive(self.id, path, chunk_size=_CHUNK)
            yield from stream

    def get_if_there(self, path: str) -> bytes | None:
        """As :meth:`get`, whole and in memory; None when there is no such path."""
        with translated(f"copy {path} out of a container"):
            try:
                stream, _ = self._api.get_archive(self.id, path, chunk_size=_CHUNK)
                return b"".join(stream)
            except docker.errors.NotFound:
                return None

    def changes(self) -> list[tuple[str, str]]:
        """Paths that differ from the image: (path, "changed" | "added" | "deleted")."""
        with translated("list the changes of a container"):
            return [(item["Path"], _KINDS[item["Kind"]]) for item in self._api.diff(self.id) or []]

    def wait(self, limit: float) -> int:
        """Wait for the container's end and return its exit code.

        Args:
            limit: Seconds; rounded up to whole ones.

        Raises:
            NotJudgedError: ``verify-timeout`` past ``limit``; the container still runs then.
        """
        began = time.monotonic()
        with translated("wait for a container"):
            try:
                return int(self._api.wait(self.id, timeout=max(math.ceil(limit), 1))["StatusCode"])
            except (requests.exceptions.Timeout, requests.exceptions.ConnectionError) as error:
                if time.monotonic() - began < limit:
                    raise
                raise NotJudgedError(
                    f"The container ran longer than {limit:g} seconds.", code="verify-timeout"
                ) from error

    def logs(self) -> bytes:
        """Everything the container wrote to stdout and stderr."""
        with translated("read a container's output"):
            return bytes(self._api.logs(self.id, stdout=True, stderr=True))

    def kill(self) -> None:
        """End it at once; no error when it does not run."""
        with translated("stop a container"):
            try:
                self._api.kill(self.id)
            except docker.errors.APIError as error:
                # 409: not running; 404: gone already
                if error.status_code not in (404, 409):
                    raise
