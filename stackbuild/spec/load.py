"""Finding and loading specs: every problem at once, each with file, line, column and a suggestion."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import ErrorDetails

from stackbuild.errors import SpecError, SpecProblem
from stackbuild.spec import yaml_tree
from stackbuild.spec.messages import explain, locate, place_of
from stackbuild.spec.model import StackSpec
from stackbuild.spec.rules import violations
from stackbuild.spec.validate import valid_part, validate
from stackbuild.spec.yaml_tree import Place, YamlReader, YamlTree
from stackbuild.spelling import closest

STACKS_FOLDER = "stacks"
SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class LoadedSpec:
    """A spec and where its parts stand.

    Attributes:
        spec: The validated spec.
        path: The file, as it was named.
        positions: Line and column of each value, by keys and list positions (``("packages", 1, "from")``).
    """

    spec: StackSpec
    path: Path
    positions: Mapping[tuple[str | int, ...], Place]

    @property
    def folder(self) -> Path:
        """The folder that the spec's relative paths start from."""
        return self.path.parent

    def where(self, *path: str | int) -> str:
        """Return ``file:line:column`` of a value, or of the nearest part of the spec that holds it."""
        while path and path not in self.positions:
            path = path[:-1]
        place = self.positions.get(path, Place(1, 1))
        return f"{self.path}:{place.line}:{place.column}"

    @property
    def name_note(self) -> str:
        """What to say where the file is not called as its stack; empty where it is."""
        name = self.spec.name
        if self.path.stem == name:
            return ""
        return (
            f"{self.path} holds the stack '{name}': its image is tagged {name}, as that of {name}{self.path.suffix} would "
            f"be. Mend the file's name or its 'name'."
        )


def load_spec(path: Path) -> LoadedSpec:
    """Read, validate and cross-check one spec.

    Args:
        path: The YAML file.

    Raises:
        SpecError: The file cannot be read (``spec-not-found``, ``spec-unreadable``), is not YAML
            (``spec-not-yaml``) or is not a valid spec; ``problems`` holds everything found.
    """
    content = _read(path)
    reader = YamlReader(content, str(path))
    tree = reader.read()
    problems = list(tree.problems)
    if tree.data is None:
        raise SpecError.of(str(path), problems)
    spec, errors = validate(tree.data)
    problems += _explained(errors, tree, reader)
    judged = (spec, {}) if spec is not None else valid_part(tree.data)
    if judged is not None:
        for violation in violations(judged[0]):
            violated = judged[1].get(violation.path, violation.path)
            place = place_of(tree, violated, key=_is_key(tree, violated))
            problems.append(reader.problem(place, violation.message, violation.suggestion, violation.code))
    if problems or spec is None:
        unique = sorted(set(problems), key=lambda problem: (problem.line, problem.column, problem.message))
        raise SpecError.of(str(path), unique)
    return LoadedSpec(spec, path, tree.values)


def load_specs(paths: Iterable[Path]) -> list[LoadedSpec]:
    """Load several specs.

    Args:
        paths: The YAML files.

    Raises:
        SpecError: Some are not valid: one error with what is wrong in each.
    """
    loaded: list[LoadedSpec] = []
    broken: list[SpecError] = []
    for path in paths:
        try:
            loaded.append(load_spec(path))
        except SpecError as error:
            broken.append(error)
    if len(broken) == 1:
        raise broken[0]
    if broken:
        raise SpecError(
            f"{len(broken)} of {len(broken) + len(loaded)} specs are not valid",
            detail="\n".join(str(error) for error in broken),
            problems=[problem for error in broken for problem in error.problems],
        )
    return loaded


def name_taken(stack: LoadedSpec, other: Path) -> SpecError:
    """The error for a stack whose name another has: both would have one image, one history and one page.

    Args:
        stack: The stack.
        other: The spec that has the name already.
    """
    return SpecError(
        f"the stack {other} is called '{stack.spec.name}' as well",
        code="stack-name-twice",
        where=stack.where("name"),
        do="Give each stack a name of its own, best that of its file.",
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(yaml_tree.MAX_BYTES + 1)
    except FileNotFoundError:
        raise _missing(path) from None
    except IsADirectoryError:
        raise SpecError("this is a folder, not a spec", code="spec-unreadable", where=str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise SpecError(f"cannot be read: {reason}", code="spec-unreadable", where=str(path)) from error


def _missing(path: Path) -> SpecError:
    if path.is_symlink():
        return SpecError(
            f"this is a link to {path.readlink()}, where no file is",
            code="spec-not-found",
            where=str(path),
            do="Put back what it leads to, or remove the link.",
        )
    return SpecError(
        "there is no such file",
        code="spec-not-found",
        where=str(path),
        do="`stackbuild init NAME` writes a spec to start from.",
    )


def _explained(errors: list[ErrorDetails], tree: YamlTree, reader: YamlReader) -> list[SpecProblem]:
    located = [(error, *locate(tree, error["loc"])) for error in errors]
    problems = []
    for error, path, branched in located:
        # A value that may be one of several kinds is reported for each kind; the deepest report is the meant one,
        # and at equal depth the first.
        others = [other for entry, other, _ in located if entry is not error]
        if (
            branched
            and error["type"] in ("literal_error", "tuple_type")
            and any(other[: len(path)] == path and len(other) > len(path) for other in others)
        ):
            continue
        if error["type"] == "too_short" and any(other[:-1] == path for other in others if other):
            continue
        if branched and error["type"] == "tuple_type" and path in others:
            continue
        problems.append(reader.problem(*explain(error, tree)))
    return problems


def _is_key(tree: YamlTree, path: tuple[str | int, ...]) -> bool:
    """A rule about a whole section, or one that is not there, points at its key."""
    return path in tree.keys and not tree.values[path].written


def stacks_folder(start: Path) -> Path | None:
    """Return ``stacks/`` of ``start`` or of its nearest parent that has one."""
    for folder in (start, *start.parents):
        if (folder / STACKS_FOLDER).is_dir():
            return folder / STACKS_FOLDER
    return None


def list_stacks(start: Path) -> list[Path]:
    """Return the specs in the nearest ``stacks/``, in name order; none when there is no such folder.

    A link that leads nowhere is among them: to read it says so, where to pass it over would hide a stack.
    """
    folder = stacks_folder(start.absolute())
    if folder is None:
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and _is_stack(path))


def _is_stack(path: Path) -> bool:
    return path.is_file() or (path.is_symlink() and not path.is_dir())


def find_stack(name_or_path: str, start: Path) -> Path:
    """Return the spec of a stack.

    Args:
        name_or_path: A name in ``stacks/``, or the path of a YAML file.
        start: The folder that relative paths and the search for ``stacks/`` start from.

    Raises:
        SpecError: There is none (``spec-not-found``); the nearest name is suggested.
    """
    is_path = "/" in name_or_path or name_or_path.endswith(SUFFIXES)
    if is_path and name_or_path.endswith(SUFFIXES):
        path = start / name_or_path
        if os.path.isfile(path):  # noqa: PTH113 - False as well for a name that no file can have
            return path
        if os.path.islink(path):  # noqa: PTH114 - as above
            raise _missing(path)
        raise SpecError("there is no such file", code="spec-not-found", where=name_or_path)
    stacks = list_stacks(start)
    for path in stacks:
        if path.stem == name_or_path:
            return path
    names = [path.stem for path in stacks]
    near = closest(name_or_path, names)
    if near:
        do = f"Did you mean '{near}'?"
    elif names:
        do = f"There are: {', '.join(names)}."
    else:
        do = "There is no stacks/ folder here; `stackbuild init NAME` makes one."
    raise SpecError(f"there is no stack '{name_or_path}'", code="spec-not-found", do=do)
