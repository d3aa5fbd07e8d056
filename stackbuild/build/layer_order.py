"""The layers above the base, most stable first (DESIGN §3.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from stackbuild.build.base import Base
from stackbuild.build.interface import BuildRequest
from stackbuild.build.interim import InterimImages, LayerTar
from stackbuild.build.layer_groups import with_framework_needs
from stackbuild.build.layer_run import LayerRun
from stackbuild.engine.docker_engine import Engine
from stackbuild.layers.bytecode import BytecodeMaker
from stackbuild.layers.debs import DebsMaker
from stackbuild.layers.debs_repository import LocalDeb
from stackbuild.layers.files import files_maker, scan_files
from stackbuild.layers.interface import Layer
from stackbuild.layers.system import system_maker
from stackbuild.layers.venv import VENV, VenvMaker
from stackbuild.layers.wheels import WheelFile, WheelsMaker, wheels_makers
from stackbuild.lock.model import BootstrapBaseLock, LockedDeb, LockedWheel, PythonLock

# Which layers' sources each layer of byte-code is made from, in the order of the layers.
_BYTECODE = {
    "torch": ("torch-bytecode", ("cuda", "torch")),
    "framework": ("frameworks-bytecode", ("framework",)),
    "other": ("other-bytecode", ("other",)),
}
_STDLIB = re.compile(r"^libpython3\.\d+-(minimal|stdlib)$")


class Inputs(Protocol):
    """The locked files on this machine, fetched when they are asked for."""

    def debs(self, wanted: Sequence[LockedDeb]) -> Sequence[LocalDeb]:
        """Each package with its verified file, in the order given."""

    def wheels(self, wanted: Sequence[LockedWheel]) -> Mapping[str, Path]:
        """The verified file of each wheel, by sha256."""


class LayerOrder:
    """Puts one stack's layers on its base.

    Args:
        request: The stack.
        base: Its base.
        inputs: Its locked files.
        run: Makes or finds each layer.
        interim: Images to run makers in, and early loads.
        engine: Runs makers that need a container.
    """

    def __init__(
        self,
        request: BuildRequest,
        base: Base,
        inputs: Inputs,
        run: LayerRun,
        interim: InterimImages,
        engine: Engine,
    ) -> None:
        self._request = request
        self._lock = request.platform_lock
        self._base = base
        self._inputs = inputs
        self._run = run
        self._interim = interim
        self._engine = engine

    def make(self) -> None:
        """Add all layers to the run."""
        # Before anything is made: a file that is missing fails the build at once.
        sources = scan_files(self._request.spec.files, self._request.folder)
        debs = self._debs()
        if self._lock.python is not None:
            self._python(self._lock.python, debs)
        system = system_maker(self._request.spec.image, self._run.tree())
        if system is not None:
            self._run.add(system)
        files = files_maker(sources, self._run.tree())
        if files is not None:
            self._run.add(files)

    def tars(self) -> list[LayerTar]:
        """All layers so far with their tars, the base's first."""
        base: list[LayerTar] = [(diff_id, None) for diff_id in self._base.diff_ids]
        return base + [(layer.diff_id, layer.path) for layer in self._run.layers]

    def _debs(self) -> Layer | None:
        debs = self._lock.debs
        if not debs:
            return None
        maker = DebsMaker(
            engine=self._engine,
            image="",
            base=self._base.diff_ids,
            debs=tuple((deb, _NOT_YET) for deb in debs),
            wanted=tuple(self._request.spec.apt),
        )
        return self._run.add(
            maker,
            ready=lambda: replace(maker, image=self._base.image(), debs=tuple(self._inputs.debs(debs))),
        )

    def _python(self, python: PythonLock, debs: Layer | None) -> None:
        image = self._python_image(len(self._run.layers))
        source = self._own_stdlib(debs)
        if source is not None:
            self._bytecode("stdlib-bytecode", python, [source], image, stdlib=True)
        below = self._run.tree()
        self._run.add(VenvMaker(python, below.lineage(VENV)))
        makers = wheels_makers(
            with_framework_needs(self._lock), self._request.platform, _NotYet(), self._run.tree()
        )
        missing = [maker for maker in makers if not self._run.has(maker)]
        paths = self._inputs.wheels([each.wheel for maker in missing for each in maker.wheels])
        layers: dict[str, Layer] = {}
        for maker in makers:
            layer = self._run.add(maker, ready=partial(_with_paths, maker, paths))
            if layer is not None:
                layers[maker.group] = layer
            # Loads while the next layers are made, byte-code above all.
            self._interim.load_early(self.tars(), base=self._base.image)
            if maker.group in _BYTECODE:
                group, of = _BYTECODE[maker.group]
                self._bytecode(group, python, [_source(layers[name]) for name in of if name in layers], image)

    def _bytecode(
        self,
        group: str,
        python: PythonLock,
        sources: Sequence[tuple[str, Path]],
        image: Callable[[], str],
        *,
        stdlib: bool = False,
    ) -> None:
        maker = BytecodeMaker(
            group=group,
            engine=self._engine,
            image="",
            python=python,
            layers=tuple(path for _, path in sources),
            layer_keys=tuple(key for key, _ in sources),
            left_out=self._lock.bytecode_left_out,
            stdlib=stdlib,
        )
        self._run.add(maker, ready=lambda: replace(maker, image=image()))

    def _python_image(self, above: int) -> Callable[[], str]:
        """The image to compile in: the base and its debs; only the sources come on top."""

        def image() -> str:
            base = self._base.image()
            if not above:
                return base
            return self._interim.image(self.tars()[: len(self._base.diff_ids) + above])

        return image

    def _own_stdlib(self, debs: Layer | None) -> tuple[str, Path] | None:
        """Key and tar of the layer with the distribution's Python, when it comes from our debs."""
        if debs is not None and _has_stdlib(self._lock.debs):
            return _source(debs)
        base = self._lock.base
        if isinstance(base, BootstrapBaseLock) and _has_stdlib(base.debs):
            return base.diff_id, self._base.bootstrap_tar()
        return None


class _NotYet(Mapping[str, Path]):
    """Stands for paths while only keys are asked for, so that a layer in the store needs no inputs."""

    def __getitem__(self, key: str) -> Path:
        return _NOT_YET

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_NOT_YET = Path("/nonexistent")


def _with_paths(maker: WheelsMaker, paths: Mapping[str, Path]) -> WheelsMaker:
    return replace(
        maker, wheels=tuple(WheelFile(each.wheel, paths[each.wheel.sha256]) for each in maker.wheels)
    )


def _source(layer: Layer) -> tuple[str, Path]:
    return layer.key, layer.path


def _has_stdlib(debs: Sequence[LockedDeb]) -> bool:
    return any(_STDLIB.match(deb.name) for deb in debs)
