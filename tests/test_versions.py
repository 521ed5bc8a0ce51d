"""pyproject.toml, constraints.txt and environment.yml say the same."""

import importlib.metadata
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
PINNED = {canonicalize_name(name): version for name, version in (line.split("==") for line in LINES)}


def requirements():
    extras = PROJECT["optional-dependencies"].values()
    return [Requirement(line) for group in (PROJECT["dependencies"], *extras) for line in group]


def test_every_requirement_is_pinned_to_a_version_it_allows():
    for requirement in requirements():
        assert requirement.specifier.contains(PINNED[canonicalize_name(requirement.name)]), requirement.name


def test_what_is_installed_is_what_is_pinned():
    for name, version in PINNED.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform, or an extra that is not installed
        assert installed.split("+")[0] == version, name


def test_environment_installs_the_same_with_pip():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert "pip" in dependencies
    assert {"pip": ["-c constraints.txt", "-e .[book,dev]"]} in dependencies
    assert f"python={'3.11'}" in dependencies and PROJECT["requires-python"] == ">=3.11"
    assert {"book", "dev"} <= set(PROJECT["optional-dependencies"])


def test_no_local_label_and_no_address_in_the_constraints():
    assert not [line for line in LINES if "+" in line or "/" in line or "@" in line]
