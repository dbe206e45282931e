import ast
import os
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import shoal

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "shoal"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

# As docs/design.md draws them: a room imports from those before it.
ROOMS = [
    *("interrupts", "errors", "passwords", "distribution", "spelling", "typing", "progress", "files", "arrays"),
    *("kernels", "settings", "sources", "datasets", "columns", "space", "findings", "methods", "models", "aggregate"),
    *("constraints", "measures", "dp", "job", "output", "engines", "auditing", "release", "inspection", "comparison"),
    *("stream", "incremental", "estimator", "dialect", "app", "cli", "__main__"),
]


def run_python(*arguments, **settings):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, **settings).stdout


def test_the_readmes_code_prints_what_stands_below_it():
    blocks = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", README, re.DOTALL)

    assert blocks
    assert README.count("```python") == len(blocks)
    for code, printed in blocks:
        assert run_python("-W", "error", "-c", code) == printed


def test_the_readme_shows_what_the_demo_prints(tmp_path):
    (shown,) = re.findall(r"<!-- demo -->\n+```text\n(.*?)```", README, re.DOTALL)

    assert run_python("-m", "shoal.cli", "demo", cwd=tmp_path) == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_between_pages_leads_to_a_file(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.skipif((ROOT / "PKG-INFO").exists(), reason="a source distribution comes without .ci")
def test_ci_can_be_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_version_is_said_in_one_place():
    assert shoal.__version__ == PROJECT["version"]


def test_the_wheel_holds_the_package_and_the_source_distribution_the_papers_too():
    assert SETTINGS["tool"]["scikit-build"]["wheel"]["packages"] == ["src/shoal"]
    assert "papers" not in SETTINGS["tool"]["scikit-build"]["sdist"]["exclude"]
    assert not (PACKAGE / "papers").exists()


def test_the_licence_files_exist():
    assert [name for name in PROJECT["license-files"] if not (ROOT / name).is_file()] == []


def test_importing_shoal_brings_in_neither_the_command_line_nor_pictures():
    modules = run_python("-c", "import shoal, sys; print(*sys.modules)").split()

    assert {"click", "matplotlib", "shoal.cli"} & set(modules) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_upwards(room):
    files = [PACKAGE / f"{room}.py", *(PACKAGE / room).rglob("*.py")]
    imported = set().union(*(imports(file) for file in files if file.exists()))

    assert imported & set(ROOMS[ROOMS.index(room) + 1 :]) == set()


def test_every_room_is_in_the_list():
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

    assert rooms - {"__init__"} <= set(ROOMS)


def test_files_import_each_other_in_one_direction():
    files = {module_of(file): file for file in PACKAGE.rglob("*.py")}
    needs = {name: at_once(file, files) - {name} for name, file in files.items()}

    # Raises CycleError, which names the files.
    TopologicalSorter(needs).prepare()


def module_of(file):
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def at_once(file, modules):
    """Name the modules that a file imports as soon as it is imported itself."""
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names.update(inner & set(modules) or {node.module})
    # The package itself is imported before any of its modules.
    return (names & set(modules)) - {"shoal"}


def imports(file):
    """Name the rooms of shoal that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "shoal":
            names.update(f"shoal.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.split(".")[1] for name in names if name.startswith("shoal.")}


def test_every_name_that_a_docstring_refers_to_exists():
    """As a reader would reach it: `shoal.partition` is a function, and has nothing of the package that it is in."""

    def resolves(name):
        found, path = shoal, "shoal"
        for part in name.split(".")[1:]:
            path += f".{part}"
            try:
                found = getattr(found, part) if hasattr(found, part) else import_module(path)
            except ImportError:
                return False
        return True

    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    names = set(re.findall(r"`(shoal(?:\.\w+)+)", source))

    assert len(names) > 50
    assert [name for name in sorted(names) if not resolves(name)] == []
