"""The virtual environment the wheels go to: its places, and the layer with its skeleton."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from stackbuild.layers.interface import layer_key
from stackbuild.layers.tar_writer import LayerTarWriter, Sink
from stackbuild.layers.tree import Additions, FileTree
from stackbuild.lock.model import PythonLock

VENV = "opt/venv"  # relative to the image's root, like every path in a layer
VENV_PYTHON = f"/{VENV}/bin/python"
_VERSION = 1


@dataclass(frozen=True)
class VenvLayout:
    """Where things go below ``/opt/venv``.

    Args:
        python: Version as ``3.11``.
    """

    python: str

    @classmethod
    def of(cls, python: PythonLock) -> VenvLayout:
        """The layout for a locked Python."""
        return cls(".".join(python.version.split(".")[:2]))

    @property
    def site_packages(self) -> str:
        """Path of site-packages, without leading slash."""
        return f"{VENV}/lib/python{self.python}/site-packages"

    def schemes(self, distribution: str) -> Mapping[str, str]:
        """Folder of each install scheme (PyPA binary distribution format, "The .data directory").

        Headers go where pip puts them in a virtual environment.
        """
        return {
            "purelib": self.site_packages,
            "platlib": self.site_packages,
            "scripts": f"{VENV}/bin",
            "data": VENV,
            "headers": f"{VENV}/include/site/python{self.python}/{distribution}",
        }


@dataclass(frozen=True)
class VenvMaker:
    """Makes the skeleton that ``python -m venv --without-pip`` would make, without running it.

    Attributes:
        python: The locked Python of the base or its debs.
        lineage: ``tree.lineage(VENV)`` of the tree below.
    """

    python: PythonLock
    lineage: str

    group = "venv"

    @property
    def created_by(self) -> str:
        """One line for the image's history."""
        return f"stackbuild: virtual environment /{VENV} for Python {self.python.version}"

    def key(self) -> str:
        """Hash of all that decides the layer's bytes."""
        return layer_key("venv", _VERSION, [self.python.version, self.python.executable, VENV, self.lineage])

    def make(self, sink: Sink, tree: FileTree) -> Additions:
        """Write the layer: ``pyvenv.cfg``, ``bin/python`` and its names, ``include``, ``lib``, ``lib64``."""
        layout = VenvLayout.of(self.python)
        config = (
            f"home = {posixpath.dirname(self.python.executable)}\n"
            "include-system-site-packages = false\n"
            f"version = {self.python.version}\n"
            f"executable = {self.python.executable}\n"
        ).encode()
        links = {
            f"{VENV}/bin/python": self.python.executable,
            f"{VENV}/bin/python3": "python",
            f"{VENV}/bin/python{layout.python}": "python",
        }
        writer = LayerTarWriter(sink, tree)
        writer.add_directory(f"{VENV}/bin", owner="venv")
        for path, target in sorted(links.items()):
            writer.add_symlink(path, target, owner="venv")
        writer.add_directory(f"{VENV}/include", owner="venv")
        writer.add_directory(layout.site_packages, owner="venv")
        writer.add_symlink(f"{VENV}/lib64", "lib", owner="venv")
        writer.add_file(f"{VENV}/pyvenv.cfg", config, len(config), 0o644, owner="venv")
        return writer.close()
