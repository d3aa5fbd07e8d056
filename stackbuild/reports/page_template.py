"""Templates of pages: every value is escaped, and nothing in it can act on a reader."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from stackbuild.reports.safe_text import safe_text


@cache
def page_template(package: str, name: str) -> Template:
    """A template that lies beside a package's modules, and may use others of that package.

    Args:
        package: The package's dotted name.
        name: The template's file name.
    """
    environment = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


@cache
def page_part(package: str, name: str) -> str:
    """A file of a package that goes into a page as it is: a style sheet or a script."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _finalized(value: object) -> object:
    """What every expression of the template goes through before it is escaped."""
    # The style sheet is ours and says that it is HTML already.
    return safe_text(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
