"""Which files and folders a stack is made and judged from."""

from __future__ import annotations

from pathlib import Path

from stackbuild.lock.path import lock_path
from stackbuild.spec.load import LoadedSpec
from stackbuild.spec.model import RequirementsFile, StackSpec
from stackbuild.spec.requirement_files.requirements_txt import included_files


def stack_files(stack: LoadedSpec) -> tuple[Path, ...]:
    """Every file and folder whose change can change the stack's image or what is judged of it, there or not.

    They are the spec, its lock, the requirements files with those that they include, the sources of ``files``,
    ``target.production``, and what ``verify`` names. Wheels and indexes in folders are not: the lock has the
    hash of every wheel.

    Args:
        stack: The loaded spec.
    """
    spec, folder = stack.spec, stack.folder
    found = [stack.path, lock_path(stack.path)]
    for package in spec.packages:
        if isinstance(package, RequirementsFile):
            found += _requirements(folder / package.from_)
    found += [folder / entry.from_ for entry in spec.files]
    found += [folder / name for name in _judged_with(spec)]
    return tuple(dict.fromkeys(found))


def _requirements(path: Path) -> list[Path]:
    return list(included_files(path)) if path.suffix in (".txt", ".in") else [path]


def _judged_with(spec: StackSpec) -> list[str]:
    verify = spec.verify
    model = verify.torch_model.rpartition(":")[0] if verify.torch_model else None
    service = verify.service
    names = [spec.target.production, verify.onnx_model, model, *verify.checks]
    names += [service.request, service.answer] if service is not None else []
    return [name for name in names if name]
