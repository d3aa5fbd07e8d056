"""Every command line that a document shows is one: the command exists, and so do its options and their choices."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from stackbuild.cli.main import COMMANDS, cli
from tests.cli.documented_commands import Documented, documented_commands

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "schedules").iterdir()),
]
ALL = [command for document in DOCUMENTS for command in documented_commands(document)]


def mistake(command: Documented) -> str:
    """What click's own parser has against a command line; empty when nothing."""
    name, *arguments = command.words
    # Through the group: a command keeps the help options of the first context that it is asked in.
    group = click.Context(cli, info_name="stackbuild", **cli.context_settings)
    found = cli.get_command(group, name)
    if found is None:
        return f"there is no command {name}"
    # Paths and names in documents are examples, so values are not converted; that options have one is checked.
    context = click.Context(found, info_name=name, parent=group)
    arguments = [word for word in arguments if word not in ("|", "…")]
    try:
        values, _, _ = found.make_parser(context).parse_args(args=arguments)
    except click.UsageError as error:
        return error.format_message()
    for parameter in found.params:
        value = values.get(parameter.name)
        if isinstance(parameter.type, click.Choice) and isinstance(value, str):
            unknown = set(value.split("|")) - set(parameter.type.choices)
            if unknown:
                return f"{parameter.opts[0]} does not take {', '.join(sorted(unknown))}"
    return ""


@pytest.mark.parametrize(
    "command", ALL, ids=lambda command: f"{command.place}-{'_'.join(command.words)[:50]}"
)
def test_it_is_a_command_line(command: Documented) -> None:
    assert mistake(command) == "", " ".join(("stackbuild", *command.words))


def test_they_are_found() -> None:
    told = {command.place.rpartition(":")[0] for command in ALL}
    assert {
        "README.md",
        "publishing.md",
        "schedules.md",
        "github-actions.yml",
        "gitlab-ci.yml",
        "stackbuild-nightly.service",
    } <= told
    assert len(ALL) > 80
    assert {command.words[0] for command in ALL} >= {"publish", "verify", "matrix", "build", "check", "lock"}


def test_every_command_is_in_the_readme() -> None:
    shown = {command.words[0] for command in ALL if command.place.startswith("README.md")}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if name not in shown and f"`{name}`" not in readme] == []


@pytest.mark.parametrize(
    "words",
    [
        ("published", "x"),
        ("publish", "--stages", "x", "y"),
        ("publish", "x", "y", "--require"),
        ("host", "--format", "yml"),
    ],
)
def test_a_command_line_that_is_none_is_noticed(words: tuple[str, ...]) -> None:
    assert mistake(Documented("x", words)) != ""


def test_commands_are_cut_where_the_shell_cuts_them(tmp_path: Path) -> None:
    document = tmp_path / "x.md"
    document.write_text(
        "See `stackbuild explain CODE\\|TEXT`.\n\n"
        "    stackbuild check --fleet nodes.json   # all of them\n"
        "    stackbuild schema > a.json\n"
        "    stackbuild publish a \\\n        b --stage\n"
        '    docker run "$(stackbuild pick REPOSITORY --format reference)" …\n'
        "    stackbuild init x && stackbuild-other y\n\nstackbuild is a program.\n"
    )
    assert [command.words for command in documented_commands(document)] == [
        ("explain", "CODE|TEXT"),
        ("check", "--fleet", "nodes.json"),
        ("schema",),
        ("publish", "a", "b", "--stage"),
        ("pick", "REPOSITORY", "--format", "reference"),
        ("init", "x"),
    ]
