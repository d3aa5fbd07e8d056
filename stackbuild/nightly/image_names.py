"""What a stack's images of the night are called in the engine; nobody else's names are touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from stackbuild.engine.docker_engine import Engine
from stackbuild.engine.naming import move_name
from stackbuild.engine.uninterrupted import insisted
from stackbuild.errors import NotJudgedError
from stackbuild.spec.platforms import platform_in_a_name


@dataclass(frozen=True)
class ImageNames:
    """The names of one stack on one platform.

    Attributes:
        stack: The stack's name.
        platform: Another than the engine's own, for example ``linux/arm64``; empty for that.
    """

    stack: str
    platform: str = ""

    @property
    def last(self) -> str:
        """The image of the newest night that did not drift: what the next one is held against."""
        return f"{self.stack}:nightly{self._of}"

    @property
    def drifted(self) -> str:
        """An image that differed from :attr:`last`, until a night does not."""
        return f"{self.stack}:nightly{self._of}-drift"

    @property
    def new(self) -> str:
        """The image of a night that is not over; one that a killed night left is removed by the next."""
        return f"{self.stack}:nightly{self._of}-new"

    @property
    def _of(self) -> str:
        return f"-{platform_in_a_name(self.platform)}" if self.platform else ""

    @contextmanager
    def unfinished(self, engine: Engine) -> Iterator[None]:
        """In the block an image may be called :attr:`new`; the name is gone before and after it."""
        engine.remove_image(self.new)
        try:
            yield
        finally:
            # Of an engine that is gone more has been told already; the next night removes the name.
            with suppress(NotJudgedError):
                insisted(lambda: engine.remove_image(self.new))

    def settle(self, engine: Engine, image_id: str, *, drifted: bool) -> str:
        """Give a judged image its name, and return that.

        Args:
            engine: Has the image.
            image_id: The image.
            drifted: It differs from what it was held against.
        """
        if drifted:
            move_name(engine, image_id, self.drifted)
            return self.drifted
        move_name(engine, image_id, self.last)
        engine.remove_image(self.drifted)
        return self.last
