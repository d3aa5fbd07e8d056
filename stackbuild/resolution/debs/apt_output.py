"""What apt prints, read into values: simulations, URIs, package records, and its complaints.

Formats: apt-get(8) ``--simulate`` and ``--print-uris``; deb-src-control for records.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from urllib.parse import unquote

from stackbuild.deb822 import parse_stanzas
from stackbuild.errors import LockError, NotJudgedError, StackbuildError
from stackbuild.layers.debs_repository import exact_package
from stackbuild.lock.model import LockedDeb
from stackbuild.resolution.debs.apt_sources import repository_name

# "Inst name [old] (new origins [arch]) [conflicts…]"; "Remv name [version] [because …]"
_INST = re.compile(
    r"Inst (?P<name>\S+) (?:\[(?P<old>[^\]]+)\] )?\((?P<new>\S+) .*\[(?P<architecture>[a-z0-9-]+)\]\)"
)
_REMV = re.compile(r"Remv (?P<name>\S+) \[(?P<version>[^\]]+)\]")
_URI = re.compile(r"'(?P<uri>[^']+)' (?P<file>\S+) (?P<size>\d+)")
_UNKNOWN = re.compile(
    r"E: (?:Unable to locate package (?P<name>\S+)"
    r"|Package '?(?P<virtual>[^\s']+)'? has no installation candidate"
    r"|Version '(?P<version>[^']+)' for '(?P<versioned>[^']+)' was not found)"
)
_KEY_TROUBLE = re.compile(
    r"NO_PUBKEY|BADSIG|EXPKEYSIG|REVKEYSIG|KEYEXPIRED|is not signed|not available: \S+ \["
)
_NO_RELEASE = re.compile(r"The repository '([^']+)' (?:does not have|no longer has) a Release file")
_NETWORK = re.compile(
    r"Could not (?:connect|resolve)|Temporary failure resolving|Connection (?:timed out|failed|refused)"
    r"|Unable to connect|Network is unreachable|certificate|\b(?:429|50[0234])  "
)
_COMPLAINT = re.compile(r"(?:E|W|Err): ?|Err:\d+ ")
_SHOWN_LINES = 12


@dataclass(frozen=True)
class Installation:
    """One package that apt would install.

    Attributes:
        replaces: The version that the base has, when this is an upgrade.
    """

    name: str
    version: str
    architecture: str
    replaces: str = ""

    @property
    def exact(self) -> str:
        """What apt takes for exactly this package."""
        return exact_package(self.name, self.version, self.architecture)


@dataclass(frozen=True)
class Simulation:
    """What ``apt-get --simulate`` would do."""

    installations: tuple[Installation, ...]
    removals: tuple[str, ...]


def parse_simulation(output: str) -> Simulation:
    """Read the output of ``apt-get --simulate install``."""
    installations = {}
    removals = []
    for line in output.splitlines():
        if match := _INST.match(line):
            name = match["name"].partition(":")[0]
            found = Installation(name, match["new"], match["architecture"], match["old"] or "")
            installations[name, match["architecture"]] = found
        elif match := _REMV.match(line):
            removals.append(match["name"].partition(":")[0])
    return Simulation(tuple(installations[key] for key in sorted(installations)), tuple(sorted(removals)))


def parse_uris(output: str) -> dict[tuple[str, str, str], str]:
    """Read ``apt-get --print-uris install``: (name, version, architecture) → URI."""
    uris: dict[tuple[str, str, str], str] = {}
    for line in output.splitlines():
        if match := _URI.match(line):
            parts = match["file"].removesuffix(".deb").split("_")
            if len(parts) == 3:
                uris[parts[0], unquote(parts[1]), parts[2]] = match["uri"]
    return uris


def locked_debs(
    installations: Sequence[Installation],
    records: str,
    uris: Mapping[tuple[str, str, str], str],
    names: Mapping[str, str],
) -> tuple[LockedDeb, ...]:
    """Join what apt would install with the records of the signed lists.

    Args:
        installations: What would be installed.
        records: ``apt-cache show`` of exactly these packages.
        uris: Where apt would fetch each from.
        names: URI of a mirror → the name of the repository that it stands for.

    Raises:
        LockError: ``deb-without-hash``: the lists have no SHA256 for a package.
    """
    listed: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for stanza in parse_stanzas(without_complaints(records)):
        key = (stanza.get("Package", ""), stanza.get("Version", ""), stanza.get("Architecture", ""))
        listed.setdefault(key, []).append(stanza)
    debs = []
    for installation in installations:
        key = (installation.name, installation.version, installation.architecture)
        uri = uris.get(key, "")
        # One version may be in several repositories; the record that apt means is the one of its URI.
        record = next(
            (
                stanza
                for stanza in listed.get(key, ())
                if "SHA256" in stanza and unquote(uri).endswith(_plain(stanza.get("Filename", "?")))
            ),
            None,
        )
        if record is None:
            raise LockError(
                f"the package lists have no SHA256 for {installation.name} {installation.version}",
                code="deb-without-hash",
                where=uri or installation.name,
                do="Use a repository whose lists carry SHA256 (all that apt-ftparchive and reprepro make do).",
            )
        path = _plain(record["Filename"])
        repository = unquote(uri).removesuffix(path).rstrip("/.")
        debs.append(
            LockedDeb(
                name=installation.name,
                version=installation.version,
                architecture=installation.architecture,
                repository=names.get(repository) or repository_name(repository),
                path=path,
                sha256=record["SHA256"],
                size=int(record["Size"]),
            )
        )
    return tuple(debs)


def newest_date(lines: str) -> str:
    """The newest of the ``Date:`` lines of Release files, as RFC 3339 in UTC; empty when there is none."""
    moments = []
    for line in lines.splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "date":
            # Release files write UTC, which the mail format's parser knows only as GMT.
            moments.append(email.utils.parsedate_to_datetime(value.replace("UTC", "GMT").strip()))
    return max(moments).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moments else ""


def without_complaints(output: str) -> str:
    """The output without apt's warnings, notices and errors, which share its stream."""
    return "\n".join(line for line in output.splitlines() if not re.match(r"[WNE]: ", line))


def update_error(output: str, where: str) -> StackbuildError:
    """The error for a failed ``apt-get update``: a key, a suite that is not there, or the network.

    Args:
        output: What apt printed.
        where: Whose update it was.
    """
    detail = _complaints(output)
    if _KEY_TROUBLE.search(output):
        return LockError(
            "an apt repository's signature does not check out",
            code="apt-key-mismatch",
            where=where,
            do="Check 'key-sha256' and 'key-url' in 'apt-sources', and that the key is the repository's own.",
            detail=detail,
        )
    if (match := _NO_RELEASE.search(output)) and not _NETWORK.search(output):
        return LockError(
            f"the apt repository {match.group(1)!r} does not exist",
            code="no-such-apt-suite",
            where=where,
            do="Check 'uri' and 'suite'; a distribution past its end of life moves to an archive.",
            detail=detail,
        )
    return NotJudgedError(
        "the package lists cannot be fetched",
        code="repository-unreachable",
        where=where,
        do="Check the network, or map the repository to a mirror under 'repositories' in stackbuild.toml.",
        detail=detail,
    )


def install_error(output: str, where: str) -> StackbuildError:
    """The error for an installation that apt refuses: an unknown package, or no solution."""
    unknown = sorted(
        {match["name"] or match["virtual"] or match["versioned"] for match in _UNKNOWN.finditer(output)}
    )
    if unknown:
        return LockError(
            f"no apt repository has {', '.join(unknown)}",
            code="no-such-deb",
            where=where,
            do="Check the names under 'apt' in the spec; a package of another repository needs 'apt-sources'.",
        )
    return LockError(
        "apt finds no way to install the packages",
        code="debs-unsolvable",
        where=where,
        do="The lines above name the packages that contradict each other: leave one out, or change the base.",
        detail=_complaints(output, all_lines=True),
    )


def _plain(path: str) -> str:
    return path.removeprefix("./")


def _complaints(output: str, *, all_lines: bool = False) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    chosen = lines if all_lines else [line for line in lines if _COMPLAINT.match(line)]
    return "\n".join((chosen or lines)[-_SHOWN_LINES:])
