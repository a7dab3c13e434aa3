"""What is in the wheel and in the sdist."""

import tarfile
from pathlib import Path

import pytest

import quintet
from tests.wheel.package import ROOT, Package

pytestmark = pytest.mark.wheel


def shipped() -> set[str]:
    paths = (path for path in (ROOT / "src/quintet").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT / "src").as_posix() for path in paths}


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(package: Package) -> None:
    inside = {name for name in package.names if ".dist-info/" not in name}
    assert inside == shipped()
    assert "quintet/py.typed" in inside


def test_the_version_comes_from_one_place(package: Package) -> None:
    assert f"\nVersion: {quintet.__version__}\n" in package.metadata()
    assert package.wheel.name == f"quintet-{quintet.__version__}-py3-none-any.whl"


def test_the_sdist_holds_what_is_needed_to_work_on_it(package: Package) -> None:
    with tarfile.open(package.sdist) as archive:
        names = {Path(name).relative_to(f"quintet-{quintet.__version__}").as_posix() for name in archive.getnames()}
    assert {"Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "pyproject.toml"} <= names
    assert {f"src/{name}" for name in shipped()} <= names
    assert "tests/wheel/test_package.py" in names
