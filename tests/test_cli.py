"""The command line itself: its version, how it starts, and commands of other packages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType

import pytest
import typer
from cli_cases import plain, run

import bitweigh
from bitweigh._cli import plugins


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


def test_it_tells_its_version() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"bitweigh {bitweigh.__version__}\n"


def test_it_runs_as_a_module() -> None:
    done = python("-m", "bitweigh", "--version")
    assert (done.returncode, done.stdout) == (0, f"bitweigh {bitweigh.__version__}\n")


@pytest.mark.parametrize("package", ["rich", "typer"])
def test_it_says_how_to_install_what_it_needs(package: str) -> None:
    done = python(
        "-c",
        f"import sys; sys.modules[{package!r}] = None; from bitweigh._cli import main; main()",
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"bitweigh: the command line needs {package}: pip install 'bitweigh[cli]'\n"
    )


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install plugins, given as command names and the targets of their entry points."""

    def installed(**targets: str) -> None:
        known = EntryPoints(EntryPoint(name, at, plugins.GROUP) for name, at in targets.items())

        def entry_points(**chosen: str) -> EntryPoints:
            return known.select(**chosen)

        monkeypatch.setattr(plugins, "entry_points", entry_points)

    module = ModuleType("bitweigh_test_plugin")
    group = typer.Typer(help="A group of commands.")

    @group.command("inner")
    def inner(number: int) -> None:
        """Run."""
        typer.echo(f"inner {number}")

    @group.command("other")
    def other() -> None:
        """Run."""

    def greet(name: str = "you") -> None:
        """Say hello.

        Example: bitweigh greet
        """
        typer.echo(f"hello {name}")

    module.group, module.greet = group, greet  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return installed


def test_a_function_of_another_package_is_a_command(install: Install) -> None:
    install(greet="bitweigh_test_plugin:greet")
    assert run("greet", "--name", "us").stdout == "hello us\n"
    assert "Say hello." in plain(run("--help").stdout)
    assert "Example: bitweigh greet" in plain(run("greet", "--help").stdout)


def test_a_group_of_another_package_has_its_commands(install: Install) -> None:
    install(group="bitweigh_test_plugin:group")
    assert run("group", "inner", "3").stdout == "inner 3\n"
    assert "A group of commands." in plain(run("--help").stdout)
    assert run("group", "inner", "x").exit_code == 2


def test_no_package_can_replace_a_command_of_bitweigh(install: Install) -> None:
    install(info="bitweigh_test_plugin:greet")
    assert "hello" not in run("info", "nowhere").output
    assert "Say hello." not in plain(run("--help").stdout)


@pytest.mark.parametrize("command", [("demo",), ("demo", "--help"), ("paper", "reproduce", "-x")])
def test_a_command_whose_package_is_missing_says_what_to_install(
    install: Install, command: tuple[str, ...]
) -> None:
    install()
    result = run(*command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert plain(result.stderr) == (
        f"error: `bitweigh {command[0]}` is in a package of its own: "
        "pip install bitweigh-experiments\n"
    )


def test_the_help_lists_commands_whose_package_is_missing(install: Install) -> None:
    install()
    shown = plain(run("--help").stdout)
    assert shown.count("pip install bitweigh-experiments") == 2
    assert "demo" in shown
    assert "paper" in shown


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("bitweigh_no_such_module:app", "No module named 'bitweigh_no_such_module'"),
        ("bitweigh_test_plugin:none", "has no attribute 'none'"),
    ],
)
def test_a_broken_package_breaks_its_own_command_only(
    install: Install, target: str, reason: str
) -> None:
    install(broken=target, greet="bitweigh_test_plugin:greet")
    result = run("broken", "--option", "3")
    assert result.exit_code == 1
    assert "`bitweigh broken` cannot be loaded from " in result.stderr
    assert reason in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run("greet").stdout == "hello you\n"
    shown = plain(run("--help").stdout)
    assert "Cannot be loaded." in shown
    assert "Say hello." in shown


def test_the_version_loads_no_other_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_search(**_: str) -> None:
        raise AssertionError("entry points were looked for")

    monkeypatch.setattr(plugins, "entry_points", no_search)
    assert run("--version").exit_code == 0
