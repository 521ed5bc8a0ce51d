"""The arrows between packages, and other rules that hold for every file."""

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neuronkit.companion import keys, notebooks

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "neuronkit").rglob("*.py"))

# What each package of neuronkit may import of the others.
MAY = {
    "data": {"data"},
    "metrics": {"metrics"},
    "figures": {"figures"},
    "models": {"models", "metrics"},
    "companion": {"companion", "data"},  # data: the runner fetches before a kernel starts
}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_imports_only_what_its_package_may(path):
    package = path.relative_to(ROOT / "neuronkit").parts[0]
    names = {n.split(".")[1] for n in keys.imports(tree(path)) if n.startswith("neuronkit.")}
    packages = {n for n in names if (ROOT / "neuronkit" / n).is_dir()}
    assert packages <= MAY.get(package, {"companion"})


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_star_import_no_relative_import_and_no_import_by_string(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert "*" not in {alias.name for alias in node.names}
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {"__import__", "importlib.import_module", "import_module"}


@pytest.mark.parametrize("path", [p for p in FILES if p.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_package_files_import_nothing_at_their_top(path):
    assert not [node for node in tree(path).body if isinstance(node, ast.Import | ast.ImportFrom)]


def test_notebooks_import_no_notebook_and_only_known_packages():
    for name in notebooks.names():
        for imported in keys.imports(ast.parse(notebooks.read(name).code)):
            if imported.startswith("neuronkit.") and imported != "neuronkit.InputError":
                assert imported.split(".")[1] in MAY, f"{name} imports {imported}"
            assert not imported.startswith("notebooks")


def test_import_of_neuronkit_is_light():
    code = (
        "import sys, neuronkit; print([m for m in ('torch', 'transformers', 'numpy', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_functions_have_docstrings():
    for path in FILES:
        for node in tree(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.name}: {node.name}"


def test_the_command_line_starts_fast():
    start = time.monotonic()
    subprocess.run([sys.executable, "-m", "neuronkit", "--help"], check=True, capture_output=True)
    assert time.monotonic() - start < 5  # without torch and datasets; generous, for a busy machine
