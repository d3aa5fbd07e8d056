from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from stackbuild.cli import main as main_module
from stackbuild.cli.context import project
from stackbuild.cli.main import COMMANDS, cli, run
from stackbuild.cli.options import output_options
from stackbuild.cli.output import write_result
from stackbuild.errors import BuildError


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> object:
    """Adds a command ``try`` that runs a given function."""

    def add(body: object) -> None:
        module = type(sys)("tests.cli.made_up")
        module.command = (
            output_options(click.command("try")(body)) if not isinstance(body, click.Command) else body
        )  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tests.cli.made_up", module)
        monkeypatch.setitem(COMMANDS, "try", ("tests.cli.made_up", "Try."))

    return add


def raising(error: BaseException) -> click.Command:
    @click.command("try")
    @output_options
    def try_(format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:
        raise error

    return try_


def _imported(*argv: str) -> set[str]:
    """The modules that a run of the command line, which must pass, imports beyond click's own."""
    code = (
        "import sys, click; click_ = set(sys.modules); from stackbuild.cli.main import run; "
        f"assert run({list(argv)!r}) == 0; print(*(set(sys.modules) - click_), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(result.stderr.split())


def test_help_imports_nothing_but_click() -> None:
    loaded = _imported("--help")
    assert not loaded & {"pydantic", "docker", "rich"}
    assert {name for name in loaded if name.startswith("stackbuild")} == {
        "stackbuild",
        "stackbuild.cli",
        "stackbuild.cli.main",
    }


def test_a_check_that_passes_imports_nothing_that_it_does_not_ask(tmp_path: Path) -> None:
    spec = tmp_path / "small.yaml"
    spec.write_text(
        "schema: 1\nname: small\nbase: {image: nvidia/cuda, tag: 13.0.3-base-ubuntu24.04}\n"
        'python: "3.12"\nframeworks:\n  torch: {version: "2.14.1", variant: cu130}\n'
        'target: {gpus: [H200], driver: ">=580.65"}\n'
    )
    loaded = _imported("check", str(spec))
    assert "stackbuild.compat.check" in loaded
    assert not loaded & {
        "cyclonedx", "difflib", "docker", "jinja2", "logging", "packaging.markers", "packaging.requirements",
        "packaging.specifiers", "packaging.tags", "packaging.utils", "requests", "rich", "ssl", "subprocess", "tomllib",
        "urllib3", "uv",
    }  # fmt: skip
    ours = {
        name.removeprefix("stackbuild.").partition(".")[0]
        for name in loaded
        if name.startswith("stackbuild.")
    }
    assert not ours & {
        "annotate", "build", "engine", "explain", "host", "layers", "nightly", "publish", "registry", "render", "sbom",
        "scan", "store", "verification",
    }  # fmt: skip
    assert not loaded & {"stackbuild.compat.variants", "stackbuild.lock.file", "stackbuild.lock.model"}


def test_help_lists_every_command_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-h"]) == 0
    shown = capsys.readouterr().out
    for name, (_, line) in COMMANDS.items():
        assert name in shown
        assert line in shown


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_in_the_table_is_there_and_has_help(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([name, "-h"]) == 0
    assert "Usage: stackbuild " + name in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("stackbuild 0.")


def test_an_unknown_command_is_usage_and_suggests(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["biuld"]) == 2
    assert "Did you mean 'build'" in capsys.readouterr().err


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_our_errors_are_sentences_with_their_exit_code(command, capsys: pytest.CaptureFixture[str]) -> None:
    command(raising(BuildError("It broke.", code="it-broke", where="step 3", do="Mend it.")))
    assert run(["try"]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "stackbuild: step 3: It broke.\nMend it.\n[it-broke]\n"


def test_a_mistake_of_ours_is_short_and_v_shows_where(command, capsys: pytest.CaptureFixture[str]) -> None:
    command(raising(TypeError("NoneType has no x")))
    assert run(["try"]) == 5
    short = capsys.readouterr().err
    assert "Traceback" not in short
    assert "-v" in short
    assert "TypeError: NoneType has no x" in short
    assert run(["try", "-v"]) == 5
    assert "Traceback" in capsys.readouterr().err


def test_a_full_disk_is_a_failed_build(command, capsys: pytest.CaptureFixture[str]) -> None:
    command(raising(OSError(28, "No space left on device", "/var/x")))
    assert run(["try"]) == 4
    assert "The disk is full: /var/x" in capsys.readouterr().err


def test_ctrl_c(command, capsys: pytest.CaptureFixture[str]) -> None:
    command(raising(KeyboardInterrupt()))
    assert run(["try"]) == 130
    assert "interrupted; nothing left behind" in capsys.readouterr().err


def test_a_failure_while_an_interrupt_is_undone_is_still_130(
    command, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command("try")
    def try_() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise BuildError("The engine is gone.", code="engine-died")

    command(try_)
    assert run(["try"]) == 130
    told = capsys.readouterr().err
    assert "interrupted, and not all could be undone: The engine is gone." in told
    assert "nothing left behind" not in told


def test_an_interrupt_while_a_class_is_being_made_is_130_too(tmp_path: Path) -> None:
    (tmp_path / "stopped.py").write_text(
        "import sys, click; from stackbuild.cli import main as m; mod = type(sys)('made_up')\n"
        "@click.command('try')\n"
        "def try_(): exec('raise KeyboardInterrupt')\n"
        "mod.command = try_; sys.modules['made_up'] = mod; m.COMMANDS['try'] = ('made_up', '')\n"
        "m.main(['try'])\n"
    )
    # With -m alone does the interpreter see to it itself.
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    done = subprocess.run([sys.executable, "-m", "stopped"], capture_output=True, text=True, env=environ)
    assert done.returncode == 130, done.stderr


def test_sigterm_ends_as_ctrl_c_does() -> None:
    code = (
        "import sys, time, click; from stackbuild.cli import main as m; mod = type(sys)('made_up')\n"
        "@click.command('try')\n"
        "def try_():\n"
        "    try: print('ready', flush=True); time.sleep(300)\n"
        "    finally: print('cleaned', flush=True)\n"
        "mod.command = try_; sys.modules['made_up'] = mod; m.COMMANDS['try'] = ('made_up', '')\n"
        "m.main(['try'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(100) == 130
        assert process.stdout.read() == "cleaned\n"
        assert "interrupted" in process.stderr.read()


def test_an_impatient_ctrl_c_does_not_stop_the_clean_up() -> None:
    code = (
        "import sys, time, click; from stackbuild.cli import main as m; mod = type(sys)('made_up')\n"
        "@click.command('try')\n"
        "def try_():\n"
        "    try: print('ready', flush=True); time.sleep(300)\n"
        "    finally: time.sleep(1); print('cleaned', flush=True)\n"
        "mod.command = try_; sys.modules['made_up'] = mod; m.COMMANDS['try'] = ('made_up', '')\n"
        "m.main(['try'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(4):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert process.wait(100) == 130
        assert process.stdout.read() == "cleaned\n"
        assert process.stderr.read() == "stackbuild: interrupted; nothing left behind\n"


def test_a_store_that_was_removed_under_a_run_is_told_as_that(
    command: Callable[[object], None], store_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command("try")
    @output_options
    def try_(format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:
        store = project().store
        shutil.rmtree(store.root)
        store.add_stream([b"x"])

    command(try_)
    assert run(["try"]) == 5
    said = capsys.readouterr().err
    assert said.startswith(f"stackbuild: {store_root}: the store was removed while it was used\n")
    assert said.endswith("[store-vanished]\n")


def test_a_file_elsewhere_that_is_missing_is_none_of_the_store(
    command: Callable[[object], None], store_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(FileNotFoundError(2, "No such file or directory", "/elsewhere")))
    assert run(["try"]) == 5
    assert "[internal-error]" in capsys.readouterr().err


def test_a_reader_that_goes_away_does_not_change_the_exit_code() -> None:
    code = (
        "import sys, click; from stackbuild.cli import main as m; from stackbuild.cli.output import write_result\n"
        "mod = type(sys)('made_up')\n"
        "@click.command('try')\n"
        "@click.pass_context\n"
        "def try_(ctx):\n"
        "    write_result('x' * 1_000_000)\n"
        "    ctx.exit(1)\n"
        "mod.command = try_; sys.modules['made_up'] = mod; m.COMMANDS['try'] = ('made_up', '')\n"
        "m.main(['try'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(100) == 1
        assert process.stderr.read() == ""


def _in_a_shell(line: str) -> subprocess.CompletedProcess[str]:
    """A shell's words with the command as $sb: only a shell closes a stream before a program begins."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    line = f"sb() {{ '{sys.executable}' -m stackbuild.cli.main \"$@\"; }}; {line}"
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, env=environ, cwd="/")


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("sb schema >&-", 0, ""),
        ("sb --version >&-", 0, ""),
        ("sb --help >&-", 0, ""),
        ("sb build nosuch 2>&-", 3, ""),
        ("sb buld 2>&-", 2, ""),
        ("sb build nosuch >&- 2>&- <&-", 3, ""),
        ("sb build nosuch 2>/dev/full", 3, ""),
        ("sb buld 2>/dev/full", 2, ""),
        ("sb schema >/dev/full", 4, "[disk-full]"),
    ],
)
def test_the_exit_code_is_the_same_when_nobody_can_be_told(line: str, code: int, told: str) -> None:
    done = _in_a_shell(line)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "internal-error" not in done.stderr


def test_a_hearer_who_goes_away_changes_nothing() -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for arguments, code in ((["build", "nosuch"], 3), (["buld"], 2)):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "stackbuild.cli.main", *arguments]
        done = subprocess.run(command, stderr=write, stdout=subprocess.PIPE, env=environ, cwd="/")
        os.close(write)
        assert (done.returncode, done.stdout) == (code, b"")


@pytest.mark.parametrize("target", ["/proc/nowhere/x", "/proc/x", "/dev/null/x", "FILE/x"])
def test_a_result_that_cannot_be_written_is_a_usage_error(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "FILE").touch()
    target = target.replace("FILE", str(tmp_path / "FILE"))
    assert run(["schema", "-o", target]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"stackbuild: {target}: cannot be written: ")
    assert captured.err.endswith("[output-unwritable]\n")


def test_a_full_disk_under_a_result_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        write_result("x" * 10, Path("/dev/full"))


def test_results_go_to_a_file_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new" / "report.json"
    write_result(json.dumps({"a": 1}), target)
    assert target.read_text() == '{"a": 1}'
    assert list(target.parent.iterdir()) == [target]
    assert capsys.readouterr().out == ""


def test_options_reach_the_command(command, capsys: pytest.CaptureFixture[str]) -> None:
    @click.command("try")
    @output_options(formats=("table", "json", "junit"))
    def try_(format_: str, output: Path | None, quiet: bool, verbose: bool) -> None:
        click.echo(f"{format_} {output} {quiet} {verbose}")

    command(try_)
    assert run(["try", "--format", "junit", "-o", "x.xml", "-q"]) == 0
    assert capsys.readouterr().out == "junit x.xml True False\n"
    assert run(["try", "--format", "yaml"]) == 2


def test_the_group_is_importable_as_a_console_script() -> None:
    assert callable(main_module.main)
    assert isinstance(cli, click.Group)


def test_an_interrupt_when_all_is_done_changes_nothing() -> None:
    """It came while the interpreter was about to end, and was told as a traceback."""
    program = (
        "import gc, os, signal\n"
        "from stackbuild.cli import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "gc.freeze = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
        "main.main(['--version'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
