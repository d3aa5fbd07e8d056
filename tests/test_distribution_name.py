"""A distribution's name is spelt as the indexes spell it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from stackbuild.distribution_name import normalized_name


def test_separators_and_case_do_not_tell_names_apart() -> None:
    assert normalized_name("Ruamel.Yaml__clib-.x") == "ruamel-yaml-clib-x"


@given(st.text(alphabet="aZ9-_.ß ", max_size=12))
def test_as_packaging_spells_it(name: str) -> None:
    assert normalized_name(name) == canonicalize_name(name)
