"""Notebooks as text: what there is, their parameters with types and ranges, and the profiles that set them.

A parameter is a line of the cell tagged `parameters`, with a literal default:

    name: type = value  # [range:] help

type is int, float, bool, str or list[int | float | str]; range is `low to high`, or `a | b | c`, where a word in
capitals (PATH) stands for any text.
"""

import ast
import re
from dataclasses import dataclass, field
from functools import cache

import yaml

from neuronkit import InputError, unknown
from neuronkit.companion import places

TYPES = {"int": int, "float": float, "bool": bool, "str": str}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell."""

    name: str
    type: str
    default: object
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    def value(self, text):
        """`text` (a string, or a YAML value) as a value of this parameter; InputError where it is none."""
        if self.type.startswith("list["):
            items = text if isinstance(text, list) else [item.strip() for item in str(text).split(",")]
            return [self._one(item, self.type[5:-1]) for item in items]
        return self._one(text, self.type)

    def range(self) -> str:
        """The range in words."""
        return f"{self.low:g} to {self.high:g}" if self.low is not None else " | ".join(self.choices)

    def _one(self, text, kind: str):
        try:
            value = self._parse(text, kind)
        except (TypeError, ValueError, KeyError, OverflowError):
            raise InputError(f"{self.name}={text} is not of type {kind} (default {self.default!r}).") from None
        if self.low is not None and not self.low <= value <= self.high:
            raise InputError(f"{self.name}={text} is out of range: it must lie in {self.range()}.")
        free = not self.choices or any(choice.isupper() for choice in self.choices)
        if not free and value not in self.choices:
            raise InputError(f"{self.name}={text} is not possible: choose one of {self.range()}.")
        return value

    @staticmethod
    def _parse(text, kind: str):
        if kind == "bool":
            return {"true": True, "false": False, "1": True, "0": False}[str(text).lower()]
        if kind == "int" and float(text) == int(float(text)) and not isinstance(text, bool):
            return int(float(text))
        if kind == "float" and not isinstance(text, bool):
            return float(text)
        if kind == "str":
            return str(text)
        raise ValueError


@dataclass(frozen=True)
class Notebook:
    """A notebook of the book: its name (folder/stem), text, cells and what its header says of it."""

    name: str
    text: str
    node: object = field(compare=False, repr=False)

    @property
    def about(self) -> dict:
        """The header's `neuronkit` block: exhibits, claims, data, minutes, exclusive."""
        return dict(self.node.metadata.get("neuronkit", {}))

    @property
    def code(self) -> str:
        """All code cells."""
        return "\n\n".join(cell.source for cell in self.node.cells if cell.cell_type == "code")

    def parameters(self) -> dict[str, Parameter]:
        """The parameters of the tagged cell by name."""
        tagged = [c for c in self.node.cells if "parameters" in c.metadata.get("tags", [])]
        return {p.name: p for cell in tagged for p in _parameters(cell.source, self.name)}


@cache
def names() -> tuple[str, ...]:
    """The names of all notebooks, in the book's order."""
    folder = places.root() / "notebooks"
    return tuple(sorted(str(p.relative_to(folder).with_suffix("")) for p in folder.glob("*_*/*.md")))


@cache
def read(name: str) -> Notebook:
    """The notebook of that name; InputError for an unknown one."""
    import jupytext

    if name not in names():
        raise unknown("notebook", name, names())
    path = places.root() / "notebooks" / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    return Notebook(name, text, jupytext.reads(text, fmt="md:myst"))


def profiles() -> list[str]:
    """The names of the profiles, smallest first."""
    order = ["smoke", "quick", "laptop", "paper"]
    found = [p.stem for p in (places.root() / "notebooks" / "profiles").glob("*.yml")]
    return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))


def profile(name: str) -> dict[str, dict]:
    """{notebook: {parameter: value}} of a profile, with the types that the notebooks declare."""
    if name not in profiles():
        raise unknown("profile", name, profiles())
    path = places.root() / "notebooks" / "profiles" / f"{name}.yml"
    typed = {}
    for notebook, values in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items():
        typed[notebook] = _typed(read(notebook), {str(k): v for k, v in values.items()})
    return typed


def settings(selected: list[str], profile_name: str, given: list[str]) -> dict[str, dict]:
    """{notebook: all its parameters}: defaults, then the profile's, then those `given` as [NOTEBOOK.]name=value.

    A given parameter reaches every selected notebook that declares it. Raises InputError for a word without `=`, a
    name that none declares, a wrong type or a value out of range.
    """
    from_profile = profile(profile_name)
    result = {}
    for name in selected:
        parameters = read(name).parameters()
        result[name] = {p.name: p.default for p in parameters.values()} | from_profile.get(name, {})
    for word in given:
        left, equals, text = word.partition("=")
        notebook, _, parameter = left.rpartition(".")
        if not equals or not parameter:
            raise InputError(f'"{word}" sets nothing: write -p name=value or -p NOTEBOOK.name=value.')
        if notebook and notebook not in selected:
            raise InputError(
                f'"{word}" is for {read(notebook).name}, which is not among the notebooks of this command.'
            )
        among = [notebook] if notebook else selected
        declared = [name for name in among if parameter in result[name]]
        if not declared:
            raise unknown("parameter", parameter, {p for name in among for p in result[name]})
        for name in declared:
            result[name] |= _typed(read(name), {parameter: text})
    return result


def _typed(notebook: Notebook, values: dict) -> dict:
    parameters = notebook.parameters()
    for name in values:
        if name not in parameters:
            raise unknown(f"parameter of {notebook.name}", name, parameters)
    return {name: parameters[name].value(value) for name, value in values.items()}


def _parameters(source: str, notebook: str) -> list[Parameter]:
    lines, found = source.splitlines(), []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.AnnAssign):
            raise InputError(f"the parameters cell of {notebook} may hold lines `name: type = value  # help` only.")
        comment = lines[node.end_lineno - 1].partition("#")[2].strip()
        kind, default = ast.unparse(node.annotation), ast.literal_eval(node.value)
        if kind.removeprefix("list[").removesuffix("]") not in TYPES or not comment:
            raise InputError(f"{node.target.id} in {notebook} needs a type of {', '.join(TYPES)} or a list, and help.")
        found.append(Parameter(node.target.id, kind, default, **_ranged(comment)))
    return found


def _ranged(comment: str) -> dict:
    number = r"-?[\d.]+(?:e-?\d+)?"
    if match := re.fullmatch(rf"({number}) to ({number}): (.+)", comment):
        return {"low": float(match[1]), "high": float(match[2]), "help": match[3]}
    if match := re.fullmatch(r"(\w+(?: \| \w+)+): (.+)", comment):
        return {"choices": tuple(match[1].split(" | ")), "help": match[2]}
    return {"help": comment}
