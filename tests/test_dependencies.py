"""Dependencies point downwards only: packages in one declared order, modules without a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[1]
# A package, or a module at the top, imports only what stands before it.
LOWEST_FIRST = (
    # Words of all: failures, models, findings, progress.
    "errors",
    "collection",
    "frozen_model",
    "image_environment",
    "counting",
    "deb822",
    "distribution_name",
    "once",
    "digests",
    "spelling",
    "urls",
    "progress",
    "findings",
    "output_file",
    "shipped",
    "sizes",
    # Compatibility data, and a page for each code.
    "facts",
    "gates",
    "explain",
    # Doors to the outside: files, the Docker Engine, registries.
    "store",
    "engine",
    "registry",
    # What people and stackbuild write down: the site's file, specs, locks.
    "site_policy",
    "site_problems",
    "site_config",
    "spec",
    "lock",
    # What is judged and made of them.
    "annotate",
    "compat",
    "layers",
    "resolution",
    "host",
    "scan",
    "sbom",
    "drift",
    "verification",
    "reports",
    "render",
    "build",
    "publish",
    "schedule",
    "nightly",
    "importing",
    # What a person calls.
    "cli",
    "__main__",
)


@cache
def _imports() -> tuple[tuple[str, int, str], ...]:
    """Each import in stackbuild, wherever it stands: module, line, and what it names: a module, or a name of one."""
    return tuple(
        (_dotted(path), node.lineno, name)
        for path in (_REPOSITORY / "stackbuild").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in _named(node)
    )


@cache
def _inside() -> tuple[tuple[str, int, str], ...]:
    """The imports of stackbuild's own modules: module, line, the module that it names."""
    modules = {_dotted(path) for path in (_REPOSITORY / "stackbuild").rglob("*.py")}
    return tuple(
        (module, line, name if name in modules else name.rpartition(".")[0])
        for module, line, name in _imports()
        if name.startswith("stackbuild.") and {name, name.rpartition(".")[0]} & modules - {"stackbuild"}
    )


def _dotted(path: Path) -> str:
    parts = path.relative_to(_REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _named(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    else:
        assert node.level == 0, "an import that begins with a dot is not followed here"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _package(module: str) -> str:
    return module.split(".")[1]


def test_every_package_has_its_place_in_the_order() -> None:
    there = {
        path.stem
        for path in (_REPOSITORY / "stackbuild").iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
    }
    assert there == set(LOWEST_FIRST)


@pytest.mark.parametrize("package", LOWEST_FIRST)
def test_a_package_imports_only_what_stands_before_it(package: str) -> None:
    before = LOWEST_FIRST[: LOWEST_FIRST.index(package) + 1]
    upwards = [
        f"{module}:{line} imports {target}"
        for module, line, target in _inside()
        if _package(module) == package and _package(target) not in before
    ]
    assert upwards == []


def test_no_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for module, _, target in _inside():
        if target != module:
            graph.setdefault(module, set()).add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


def test_docker_is_reached_through_one_package() -> None:
    others = [
        module
        for module, _, name in _imports()
        if name.split(".")[0] == "docker" and _package(module) != "engine"
    ]
    # What `docker login` keeps is read where registries are asked.
    assert set(others) == {"stackbuild.registry.credentials"}
