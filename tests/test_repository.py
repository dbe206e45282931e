import ast
import io
import os
import re
import subprocess
import sys
import tarfile
import tokenize
import tomllib
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from shutil import which

import pytest

import shoal
from systems import NOT_IN_WINE, NOT_ON_WINDOWS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "shoal"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

# As docs/design.md draws them: a room imports from those before it.
ROOMS = [
    *("system", "interrupts", "spelling", "errors", "passwords", "distribution", "typing", "progress", "files"),
    *("arrays", "kernels", "settings", "sources", "views", "datasets", "columns", "space", "findings", "methods"),
    *("models", "aggregate", "constraints", "measures", "dp", "job", "series", "output", "engines", "auditing"),
    *("in_memory", "release", "inspection", "comparison", "stream", "spark", "incremental", "estimator"),
    *("app", "cli", "__main__"),
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
    files = {module_of(file): file for folder in (PACKAGE, ROOT / "papers") for file in folder.rglob("*.py")}
    needs = {name: at_once(file, files) - {name} for name, file in files.items()}

    # Raises CycleError, which names the files.
    TopologicalSorter(needs).prepare()


# What differs by system. O_CREAT and the like are the same everywhere.
_OF_A_SYSTEM = (
    r"\b(?:fcntl|msvcrt|_winapi|termios|ctypes)\b|import (?:resource|select)\b|0o[0-7]+|\bmode *= *[0-9]+"
    r"|\bO_(?:NOFOLLOW|DIRECTORY|NONBLOCK|CLOEXEC|BINARY|NOINHERIT)\b|\bSIG(?:KILL|TERM|BREAK|HUP|QUIT|ALRM|PIPE)\b"
    r"|\b(?:getuid|geteuid|f?chmod|f?chown|mkfifo|symlink_to|fork|killpg|PIPE_BUF|st_uid|S_IMODE)\b"
    r"|\bos *\. *(?:kill|nice|replace|name)\b|sys *\. *platform|/dev/|\. *write_text *\("
)


def test_what_differs_by_system_is_in_one_room():
    files = [file for file in PACKAGE.rglob("*.py") if file.parent.name != "system"]
    found = {file.relative_to(PACKAGE).as_posix(): re.findall(_OF_A_SYSTEM, code_of(file)) for file in files}

    assert {name: words for name, words in found.items() if words} == {"files/__init__.py": [".write_text ("]}


def code_of(file):
    """Return the code of a file, without comments and docstrings."""
    found, is_docstring = [], True
    with tokenize.open(file) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type != tokenize.COMMENT and not (token.type == tokenize.STRING and is_docstring):
                found.append((token.type, token.string))
            is_docstring = token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
    return tokenize.untokenize(found)


def test_what_is_skipped_on_windows_exists():
    for file, tests in [*NOT_ON_WINDOWS.items(), *NOT_IN_WINE.items()]:
        code = (ROOT / "tests" / file).read_text(encoding="utf-8")

        assert [test for test in tests if test != "*" and f"def {test}(" not in code] == []


def test_both_systems_offer_the_same():
    posix, windows = (_offered(PACKAGE / "system" / f"{name}.py") for name in ("posix", "windows"))

    assert len(posix) > 20
    assert posix == windows


def _offered(file):
    """Return the public names of a module, those of classes with their methods, and what they take."""

    def of(body, before=""):
        for node in body:
            if isinstance(node, ast.FunctionDef):
                yield (
                    f"{before}{node.name}",
                    (ast.unparse(node.args), ast.unparse(node.returns) if node.returns else ""),
                )
            elif isinstance(node, ast.ClassDef):
                yield f"{before}{node.name}", "class"
                if node.name != "Access":
                    yield from of(node.body, f"{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    yield f"{before}{ast.unparse(target)}", "class" if ast.unparse(target) == "Access" else "value"

    found = dict(of(ast.parse(file.read_text(encoding="utf-8")).body))
    return {name: what for name, what in found.items() if not re.search(r"(^|\.)_|\(", name)}


def module_of(file):
    parts = file.relative_to(PACKAGE.parent if file.is_relative_to(PACKAGE) else ROOT).with_suffix("").parts
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
    # The packages themselves are imported before any of their modules.
    return (names & set(modules)) - {"shoal", "papers"}


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


@pytest.mark.skipif(not (ROOT / ".git").exists() or which("git") is None, reason="not a clone, or without git")
def test_every_file_can_be_checked_out_on_windows_and_is_small():
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [name for name in names.split("\0") if name]
    alike = {name.lower(): name for name in files}

    assert [name for name in files if re.search(r'[<>:"|?*\\]|[ .](/|$)', name)] == []
    assert len(alike) == len(files)  # Windows and macOS do not distinguish capitals
    assert [name for name in files if (ROOT / name).is_file() and (ROOT / name).stat().st_size > 2_000_000] == []


@pytest.mark.skipif(sys.platform == "win32", reason="the step runs in the shell of Linux")
@pytest.mark.skipif((ROOT / "PKG-INFO").exists(), reason="a source distribution comes without workflows")
def test_publishing_is_refused_while_an_address_is_a_placeholder(tmp_path):
    """By the step of the workflow itself, on what a source distribution would state."""
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    (step,) = re.findall(r"Refuse addresses that nobody owns\n +run: \|\n((?: {10}.*\n)+)", workflow)
    stated = {"PKG-INFO": "\n".join(PROJECT["urls"].values())}
    files = ("CITATION.cff", "r/DESCRIPTION", "conda/recipe.yaml")
    stated |= {name: (ROOT / name).read_text(encoding="utf-8") for name in files}
    placeholders = {name for name, text in stated.items() if "shoal.invalid" in text}

    for kept in [set(), *({name} for name in sorted(placeholders))]:
        folder = tmp_path / ("all owned" if not kept else kept.copy().pop().replace("/", "-"))
        (folder / "dist").mkdir(parents=True)
        with tarfile.open(folder / "dist" / "shoal.tar.gz", "w:gz") as archive:
            for name, text in stated.items():
                content = (text if name in kept else text.replace("shoal.invalid", "shoal.test")).encode()
                about = tarfile.TarInfo(f"shoal/{name}")
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
        ran = subprocess.run(["bash", "-e", "-c", step], cwd=folder, capture_output=True, text=True)
        assert ran.returncode == (1 if kept else 0), ran.stderr


def test_every_action_is_pinned_to_a_commit():
    workflows = (ROOT / ".github" / "workflows").glob("*.yml")
    used = re.findall(r"uses: (\S+)", "\n".join(path.read_text(encoding="utf-8") for path in workflows))

    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("CITATION.cff", "version: {}"),
        ("README.md", "  version = {{{}}},"),
        ("mkdocs.yml", "site_name: shoal {}"),
        ("r/DESCRIPTION", "Version: {}"),
        ("conda/recipe.yaml", '  version: "{}"'),
    ],
)
def test_every_file_that_states_the_version_states_this_one(name, line):
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()

    assert line.format(PROJECT["version"]) in lines


def test_every_page_is_in_the_navigation():
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}

    assert set(re.findall(r"[\w/]+\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)) == pages


def test_the_conda_recipe_requires_what_the_package_requires():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    listed = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1]

    assert re.findall(r"- (.+)", listed)[1:] == [each.replace(">=", " >=") for each in PROJECT["dependencies"]]
