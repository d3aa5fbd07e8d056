"""Apt's sources: which repositories a base installs from (sources.list(5))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from stackbuild.deb822 import parse_stanzas
from stackbuild.resolution.image_files import ImageFiles

_LIST = "/etc/apt/sources.list"
_FOLDER = "/etc/apt/sources.list.d"
_URI_IN_LIST = re.compile(r"(?P<head>^\s*deb(?:-src)?\s+(?:\[[^\]]*\]\s+)?)(?P<uri>\S+)", re.MULTILINE)


@dataclass(frozen=True)
class AptRepository:
    """One suite of an apt repository.

    Attributes:
        uri: Without a trailing slash.
        suite: Suite, or a path that ends in a slash for a flat repository.
        components: Empty for a flat repository.
        options: As written, such as ``signed-by=/usr/share/keyrings/x.gpg``.
    """

    uri: str
    suite: str
    components: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What the lock calls it: the last part of the URI's path."""
        return repository_name(self.uri)

    def line(self) -> str:
        """It as a line of sources.list."""
        options = f"[{' '.join(self.options)}] " if self.options else ""
        return f"deb {options}{self.uri} {' '.join((self.suite, *self.components))}"


def repository_name(uri: str) -> str:
    """The last part of a repository URI's path; its host when the path is empty."""
    parts = urlsplit(uri)
    return parts.path.rstrip("/").rpartition("/")[2] or parts.netloc


def parse_sources(text: str, *, deb822: bool) -> tuple[AptRepository, ...]:
    """Read one sources file; source packages and disabled entries are passed over.

    Args:
        text: Its text.
        deb822: True for a ``.sources`` file, false for the one-line style.
    """
    return tuple(_deb822(text) if deb822 else _one_line(text))


def read_base_sources(files: ImageFiles) -> tuple[AptRepository, ...]:
    """The repositories that a base's own files name, in apt's order; empty for a base without apt."""
    found: list[AptRepository] = []
    main = files.read(_LIST)
    if main is not None:
        found.extend(parse_sources(main.decode(errors="replace"), deb822=False))
    for name, content in sorted(files.read_folder(_FOLDER).items()):
        if name.endswith((".list", ".sources")):
            found.extend(parse_sources(content.decode(errors="replace"), deb822=name.endswith(".sources")))
    return tuple(found)


def at_mirrors(
    repositories: Iterable[AptRepository], mirrors: Mapping[str, str]
) -> tuple[AptRepository, ...]:
    """The repositories with the URIs that the site gives in place of their own.

    Args:
        repositories: The repositories.
        mirrors: Repository name → URL (``SiteConfig.repositories``).
    """
    return tuple(
        replace(repository, uri=mirrors[repository.name].rstrip("/"))
        if repository.name in mirrors
        else repository
        for repository in repositories
    )


def repository_uris(
    repositories: Iterable[AptRepository], mirrors: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Where the debs of a lock are fetched: repository name → URIs, the site's mirror first.

    Args:
        repositories: The base's own repositories, and those of the spec's ``apt-sources``.
        mirrors: Repository name → URL (``SiteConfig.repositories``).
    """
    uris: dict[str, list[str]] = {name: [url.rstrip("/")] for name, url in mirrors.items()}
    for repository in repositories:
        known = uris.setdefault(repository.name, [])
        if repository.uri not in known:
            known.append(repository.uri)
    return {name: tuple(found) for name, found in uris.items()}


def replaced_uris(text: str, *, deb822: bool, mirrors: Mapping[str, str]) -> str:
    """The text of a sources file with the site's mirrors in place of the repositories' own URIs."""

    def mirrored(uri: str) -> str:
        return mirrors.get(repository_name(uri), uri)

    if not deb822:
        return _URI_IN_LIST.sub(lambda match: match["head"] + mirrored(match["uri"]), text)
    lines = []
    inside = False
    for line in text.splitlines(keepends=True):
        inside = line.lower().startswith("uris:") or (inside and line[:1] in " \t")
        lines.append(re.sub(r"\b[a-z+]+://\S+", lambda match: mirrored(match[0]), line) if inside else line)
    return "".join(lines)


def _one_line(text: str) -> Iterator[AptRepository]:
    for raw in text.splitlines():
        match = re.match(
            r"deb\s+(?:\[(?P<options>[^\]]*)\]\s*)?(?P<rest>\S.*)", raw.partition("#")[0].strip()
        )
        words = match["rest"].split() if match else []
        if match is None or len(words) < 2:
            continue
        options = tuple((match["options"] or "").split())
        yield AptRepository(words[0].rstrip("/"), words[1], tuple(words[2:]), options)


def _deb822(text: str) -> Iterator[AptRepository]:
    for stanza in parse_stanzas(text):
        fields = {name.lower(): value for name, value in stanza.items()}
        if fields.get("enabled", "yes").strip().lower() in ("no", "false", "without", "off", "disable"):
            continue
        if "deb" not in fields.get("types", "").split():
            continue
        signed = fields.get("signed-by", "").strip()
        options = (f"signed-by={signed}",) if signed.startswith("/") else ()
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                components = tuple(fields.get("components", "").split())
                yield AptRepository(uri.rstrip("/"), suite, components, options)


def sources_text(repositories: Sequence[AptRepository]) -> str:
    """The repositories as a sources.list."""
    return "".join(f"{repository.line()}\n" for repository in repositories)
