"""What commands work on: the folder's stacks, the site file, the store, the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from stackbuild.errors import SpecError, UsageError

if TYPE_CHECKING:
    from stackbuild.engine.docker_engine import Engine
    from stackbuild.site_config import SiteConfig
    from stackbuild.store.store import Store


@dataclass(frozen=True)
class Project:
    """The folder a command runs in. Everything is found when it is first asked for."""

    start: Path

    @cached_property
    def site(self) -> SiteConfig:
        """The site configuration that holds here."""
        from stackbuild.site_config import load_site_config

        return load_site_config(self.start)

    @cached_property
    def store_root(self) -> Path:
        """The store's folder, whether it is there or not."""
        from stackbuild.store.root import default_root

        return self.site.store or default_root()

    @cached_property
    def store(self) -> Store:
        """The store of this user and site; it asks the site's layer cache for layers it has not."""
        from stackbuild.store.store import Store

        root = self.store_root
        if self.site.layer_cache is None:
            return Store(root)
        from stackbuild.cli.output import talk
        from stackbuild.publish.layer_cache import LayerCache, SharedStore
        from stackbuild.registry.client import RegistryClient

        client = RegistryClient(ca_bundle=self.site.ca_bundle)
        return SharedStore(root, LayerCache(client, self.site.layer_cache), talk)

    def engine(self) -> Engine:
        """Connect to the Docker engine; use the result as a context manager."""
        from stackbuild.engine.docker_engine import Engine

        return Engine.connect()

    def stack(self, name_or_path: str) -> Path:
        """The spec of a stack: a name in the nearest ``stacks/``, a path, or a stack that ships with stackbuild.

        Raises:
            SpecError: ``spec-not-found``.
        """
        from stackbuild.shipped import shipped_stack
        from stackbuild.spec.load import find_stack

        try:
            return find_stack(name_or_path, self.start)
        except SpecError as error:
            shipped = shipped_stack(name_or_path) if error.code == "spec-not-found" else None
            if shipped is None:
                raise
            return shipped

    def stacks(self, names: Sequence[str], *, everything: bool = False) -> list[Path]:
        """The specs of several stacks.

        Args:
            names: Names or paths.
            everything: All of the nearest ``stacks/`` instead.

        Raises:
            UsageError: ``no-stack-named``: nothing was asked for, or both.
            SpecError: ``spec-not-found``.
        """
        from stackbuild.spec.load import list_stacks

        if everything and names:
            raise UsageError("Name stacks, or say --all, not both.", code="no-stack-named")
        if names:
            return [self.stack(name) for name in dict.fromkeys(names)]
        here = list_stacks(self.start)
        if everything and here:
            return here
        known = ", ".join(path.stem for path in here)
        raise UsageError(
            "No stack is named." if not everything else "There is no stack in stacks/.",
            code="no-stack-named",
            do=f"Name one of: {known}; or say --all." if known else "stackbuild init NAME makes one.",
        )

    @staticmethod
    def names_image(target: str) -> bool:
        """True for what can only be an image: a name with a tag or digest, or an id."""
        return (":" in target or "@" in target) and not target.endswith((".yaml", ".yml"))


def project(start: Path | None = None) -> Project:
    """The project of a folder.

    Args:
        start: The folder; the current one when None.
    """
    return Project((start or Path.cwd()).absolute())
