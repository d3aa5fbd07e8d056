"""The Dockerfile of a stack: a pure function of spec, lock and pin list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from stackbuild.annotate.labels import image_labels
from stackbuild.annotate.pin_list import PinList
from stackbuild.layers.debs_repository import exact_version
from stackbuild.layers.tar_writer import MTIME
from stackbuild.lock.model import BootstrapBaseLock, PlatformLock, PythonLock
from stackbuild.render import quoting
from stackbuild.render.image_config import DEFAULT_PATH, base_run_config, run_config
from stackbuild.render.requirements import pip_steps
from stackbuild.resolution.debs.apt_keys import apt_source_repository
from stackbuild.shipped import shipped_folder
from stackbuild.spec.model import FileSpec, StackSpec

TEMPLATE = "Dockerfile.j2"


def render_dockerfile(
    spec: StackSpec,
    lock: PlatformLock,
    pins: PinList,
    *,
    created: str,
    folders: Sequence[bool] = (),
    base_reference: str | None = None,
) -> str:
    """Render the Dockerfile.

    Args:
        spec: The stack.
        lock: One platform's lock.
        pins: What the image stands for.
        created: RFC 3339, for the label.
        folders: For each entry of the spec's ``files``, whether it is a folder.
        base_reference: What FROM names in place of the locked base, for an engine that has it under
            another name; the rootfs.tar of a bootstrapped base is then not asked for.

    Raises:
        SpecError: ``dockerfile-line-break``.
    """
    environment = Environment(
        loader=FileSystemLoader(shipped_folder("templates")),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - a Dockerfile is no HTML; render/quoting.py quotes
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE).render(
        **_heading(spec),
        **_system(spec, lock, base_reference),
        **_builder(spec, lock),
        **_image(spec, lock, pins, created, folders),
    )


def _heading(spec: StackSpec) -> dict[str, Any]:
    return {"title": " ".join((spec.summary or spec.name).split()), "stack": spec.name}


def _system(spec: StackSpec, lock: PlatformLock, base_reference: str | None) -> dict[str, Any]:
    base = lock.base
    bootstrap = isinstance(base, BootstrapBaseLock)
    if isinstance(base, BootstrapBaseLock):
        note = f"{base.distribution.capitalize()} {base.suite} from {len(base.debs)} packages"
        reference = base_reference
    else:
        note = f"{base.image}:{base.tag}, as it was when the stack was locked"
        reference = base_reference or f"{base.image}:{base.tag}@{base.index_digest}"
    return {
        "bootstrap": bootstrap,
        "bootstrap_path": DEFAULT_PATH,
        "base_note": note,
        "base_reference": reference,
        "root_needed": base_run_config(lock).get("User") not in (None, "", "root", "0", "0:0"),
        "keyrings": bool(spec.apt_sources),
        "apt_sources": [quoting.shell(line) for line in apt_source_lines(spec)],
        "debs": [exact_version(deb) for deb in lock.debs],
    }


def apt_source_lines(spec: StackSpec) -> list[str]:
    """The sources.list lines of the spec's further repositories; key N is keyrings/stackbuild-N.asc."""
    lines = []
    for number, source in enumerate(spec.apt_sources):
        repository = apt_source_repository(source)
        words = " ".join((repository.suite, *repository.components))
        lines.append(f"deb [signed-by=/etc/apt/keyrings/stackbuild-{number}.asc] {repository.uri} {words}")
    return lines


def _builder(spec: StackSpec, lock: PlatformLock) -> dict[str, Any]:
    python = lock.python
    if python is None:
        return dict.fromkeys(("python", "venv_package", "venv_package_note", "pip", "epoch"), "") | {
            "wheels": False,
            "steps": [],
        }
    steps = [
        {
            "file": step.file,
            "note": step.note,
            "indexes": "".join(f" {quoting.shell(f'--extra-index-url={url}')}" for url in step.extra_indexes),
        }
        for step in pip_steps(lock.wheels, spec.indexes)
    ]
    package, note = _venv_package(lock, python)
    series = ".".join(python.version.split(".")[:2])
    return {
        "python": PurePosixPath(python.executable).name,
        "venv_package": package,
        "venv_package_note": note,
        "pip": f"/opt/pip/lib/python{series}/site-packages/pip",
        "epoch": MTIME,
        "wheels": bool(lock.wheels),
        "steps": steps,
    }


def _venv_package(lock: PlatformLock, python: PythonLock) -> tuple[str, str]:
    """The package with the venv module, of the version of the locked Python where that is ours."""
    name = PurePosixPath(python.executable).name
    for deb in lock.debs:
        if deb.name == name:
            return f"{name}-venv={deb.version}", ""
    return (
        f"{name}-venv",
        "The base brings its own Python; the package that goes with it is the one apt picks.",
    )


def _image(
    spec: StackSpec, lock: PlatformLock, pins: PinList, created: str, folders: Sequence[bool]
) -> dict[str, Any]:
    image, base = spec.image, base_run_config(lock)
    labels = image_labels(spec, pins, (), created=created)
    config = run_config(spec, lock, labels)
    user = None
    if image.user is not None:
        user = {
            "name": image.user.name,
            "uid": image.user.uid,
            "gid": image.user.gid if image.user.gid is not None else image.user.uid,
            "home": quoting.shell(image.user.home or f"/home/{image.user.name}"),
        }
    return {
        "user": user,
        "directories": " ".join(quoting.shell(place) for place in _directories(spec)),
        "copies": [_copy(entry, number, folders) for number, entry in enumerate(spec.files)],
        "environment": _environment(config, base, bootstrap=isinstance(lock.base, BootstrapBaseLock)),
        "ports": sorted(set(config.get("ExposedPorts", {})) - set(base.get("ExposedPorts") or {})),
        "volumes": quoting.words(image.volumes) if image.volumes else "",
        "workdir": quoting.path(image.workdir) if image.workdir else "",
        "stop_signal": image.stop_signal or "",
        "healthcheck": _healthcheck(spec),
        "labels": [quoting.assignment(key, value) for key, value in labels.items()],
        "final_user": config.get("User", ""),
        "entrypoint": None if image.entrypoint == "keep" else quoting.words(config.get("Entrypoint") or []),
        "cmd": quoting.words(config["Cmd"]) if config.get("Cmd") else "",
    }


def _directories(spec: StackSpec) -> list[str]:
    image = spec.image
    places = [*image.volumes, *([image.workdir] if image.workdir else [])]
    if image.user is not None:
        places.append(image.user.home or f"/home/{image.user.name}")
    return sorted(set(places))


def _copy(entry: FileSpec, number: int, folders: Sequence[bool]) -> str:
    """Always of a folder, so that no name is read as a pattern: a file lies alone in it, under its last name."""
    chown = f"--chown={entry.owner} " if entry.owner else ""
    is_folder = folders[number] if number < len(folders) else entry.from_.endswith("/")
    target = PurePosixPath(
        entry.to if is_folder or entry.to.endswith("/") else PurePosixPath(entry.to).parent
    )
    return chown + quoting.copy_words(f"files/{number}/", f"{target}".rstrip("/") + "/")


def _environment(config: Mapping[str, Any], base: Mapping[str, Any], *, bootstrap: bool) -> list[str]:
    """The variables that the base does not already set so."""
    there = set(base.get("Env") or [])
    if bootstrap:
        there = {f"PATH={DEFAULT_PATH}"}
    changed = [entry.split("=", 1) for entry in config["Env"] if entry not in there]
    return [quoting.assignment(name, value) for name, value in changed]


def _healthcheck(spec: StackSpec) -> str:
    check = spec.image.healthcheck
    if check is None:
        return ""
    if check.test[0] == "NONE":
        return "NONE"
    options = {
        "interval": check.interval,
        "timeout": check.timeout,
        "start-period": check.start_period,
        "retries": check.retries,
    }
    flags = [f"--{name}={value}" for name, value in options.items() if value]
    if check.test[0] == "CMD-SHELL":
        command = " ".join(check.test[1:])
    else:
        command = quoting.words(check.test[1:] if check.test[0] == "CMD" else check.test)
    return " ".join([*flags, "CMD", command])
