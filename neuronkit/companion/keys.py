"""What a result depends on, as a sha256: code, versions, arguments.

The code of a function is its module and every neuronkit module that it imports, directly or not, inside functions
too. It is compared as a syntax tree without docstrings, so that words and layout change nothing. Files that are not
Python count with the package that they lie in.
"""

import ast
import hashlib
import importlib.metadata
import inspect
import json
import sys
from functools import cache
from pathlib import Path

import numpy as np

from neuronkit import InputError

PACKAGE = Path(__file__).parents[1]


def digest(value) -> str:
    """sha256 of a JSON-able value, the same whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, allow_nan=True).encode()).hexdigest()


def without_docstrings(tree: ast.AST) -> ast.AST:
    """The tree without the docstrings of its modules, classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return tree


def imports(tree: ast.AST) -> set[str]:
    """Dotted names that the code imports, at any depth: `from a import b` gives a and a.b."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def code(names: set[str], package: Path = PACKAGE) -> dict[str, str]:
    """{file or distribution: digest or version} of all that the imported names bring with them.

    names: dotted, as `imports` gives them. Standard-library modules count as the Python version does.
    """
    found, waiting, foreign = {}, set(names), set()
    while waiting:
        name = waiting.pop()
        if name.split(".")[0] != package.name:
            foreign.add(name.split(".")[0])
            continue
        for file in _files(name, package):
            key = str(file.relative_to(package.parent))
            if key not in found:
                found[key], more = _read(file, file.stat().st_mtime_ns)
                waiting |= more
    versions = {d: v for top in foreign - sys.stdlib_module_names for d, v in _versions(top)}
    return found | versions | {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}


def of_call(function, arguments: dict) -> tuple[str, dict]:
    """(key, what it is made of) of a call of a function of neuronkit with all its arguments."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    named = getattr(module, getattr(function, "__name__", ""), None)
    if not inspect.isfunction(function) or named is not function or not module.__name__.startswith("neuronkit."):
        raise InputError(
            f"{getattr(function, '__qualname__', function)} can't be cached: only a function that stands at the top of "
            "a neuronkit module can, as its code is part of the key."
        )
    parts = {
        "function": f"{function.__module__}.{function.__name__}",
        "arguments": {name: describe(value, name) for name, value in arguments.items()},
        "code": code({function.__module__}),
    }
    return digest(parts), parts


def describe(value, name: str = "argument"):
    """A JSON-able description of a value that tells it from every other value, by contents."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, np.generic):
        return describe(value.item(), name)
    if isinstance(value, Path):
        return {"path": contents(value)}
    if hasattr(value, "key"):  # an earlier result
        return {"result": value.key}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        raw = hashlib.sha256(np.ascontiguousarray(value).data if value.size else b"").hexdigest()
        return {"array": [value.dtype.str, list(value.shape), raw]}
    if isinstance(value, list | tuple):
        return [describe(item, name) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: describe(item, name) for key, item in value.items()}}
    raise InputError(
        f"{name} is a {type(value).__name__}, which can't be part of a key: pass plain values, arrays, paths or an "
        "earlier result."
    )


def contents(path: Path) -> str:
    """sha256 of a file, or of all files of a folder with their names."""
    if path.is_dir():
        return digest({str(f.relative_to(path)): contents(f) for f in sorted(path.rglob("*")) if f.is_file()})
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}): give the path of a file or folder.") from error


def _files(name: str, package: Path):
    """The files that importing a dotted name of the package runs or carries with it."""
    parts = name.split(".")[1:]
    folder = package
    yield package / "__init__.py"
    for i, part in enumerate(parts):
        if (folder / f"{part}.py").is_file() and i >= len(parts) - 2:  # the last part may be a function in it
            yield folder / f"{part}.py"
            return
        if not (folder / part).is_dir():
            return
        folder = folder / part
        yield from (f for f in folder.iterdir() if f.is_file() and (f.suffix != ".py" or f.stem == "__init__"))


@cache
def _read(file: Path, mtime: int) -> tuple[str, frozenset[str]]:
    if file.suffix != ".py":
        return contents(file), frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return hashlib.sha256(ast.dump(without_docstrings(tree)).encode()).hexdigest(), frozenset(imports(tree))


@cache
def _versions(top: str) -> tuple[tuple[str, str], ...]:
    distributions = _distributions().get(top, [])
    return tuple((d, importlib.metadata.version(d)) for d in sorted(set(distributions)))


@cache
def _distributions():
    return importlib.metadata.packages_distributions()
