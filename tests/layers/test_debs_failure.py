"""Reading apt's and dpkg's output."""

from __future__ import annotations

from stackbuild.layers.debs_failure import install_failure


def test_an_archive_that_fails_is_named_without_its_folder() -> None:
    output = "dpkg: error processing archive /.stackbuild/cache/archives/x_1_all.deb (--unpack):\n trying to overwrite '/a'\n"
    failure = install_failure(output)
    assert failure.package == "x_1_all.deb"
    assert failure.detail.splitlines()[-1] == " trying to overwrite '/a'"


def test_without_a_package_the_last_lines_are_shown_and_long_ones_cut() -> None:
    output = "\n\n".join(f"line {number}" for number in range(40)) + "\n" + "x" * 5000
    lines = install_failure(output).detail.splitlines()
    assert len(lines) == 15
    assert lines[-2] == "line 39"
    assert len(lines[-1]) < 310
