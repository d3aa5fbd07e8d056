"""What a base's own files say of it: distribution, release, glibc."""

from __future__ import annotations

import re
import shlex

from stackbuild.lock.model import OsLock
from stackbuild.resolution.image_files import ImageFiles

_LIBC = (
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/aarch64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/usr/lib64/libc.so.6",
    "/lib64/libc.so.6",
)
_GLIBC_BANNER = re.compile(rb"GNU C Library [^\n]{0,200}? release version (\d+\.\d+)")


def measure_os(files: ImageFiles) -> OsLock:
    """Read a base's distribution and glibc from its files.

    Args:
        files: The base's files.

    Returns:
        The facts; ``glibc`` is empty for a base without the GNU C library.
    """
    text = files.read("/etc/os-release") or files.read("/usr/lib/os-release") or b""
    release = parse_os_release(text.decode(errors="replace"))
    glibc = ""
    for path in _LIBC:
        library = files.read(path)
        if library is not None:
            glibc = glibc_version(library)
            break
    return OsLock(
        # os-release(5): ID defaults to "linux".
        id=release.get("ID", "linux"),
        version_id=release.get("VERSION_ID", ""),
        codename=release.get("VERSION_CODENAME", ""),
        glibc=glibc,
    )


def parse_os_release(text: str) -> dict[str, str]:
    """The variables of an os-release file (os-release(5)); lines that are no assignment are passed over."""
    variables: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if not equals or name.startswith("#"):
            continue
        try:
            words = shlex.split(value)
        except ValueError:
            continue
        variables[name] = words[0] if words else ""
    return variables


def glibc_version(library: bytes) -> str:
    """The version in the banner that glibc's libc.so.6 carries; empty for another C library."""
    match = _GLIBC_BANNER.search(library)
    return match.group(1).decode() if match else ""
