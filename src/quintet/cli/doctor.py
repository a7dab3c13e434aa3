"""`quintet doctor`: whether a run can start, and what to do where it cannot."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from quintet.prose import hanging
from quintet.setup.checks import DoctorFinding, Level
from quintet.setup.doctor import examine


def doctor(config_file: Path | None, as_json: bool, **flags: Any) -> int:
    """Print each check; the exit code is 1 where one of them keeps a run from starting."""
    checks = list(examine(os.environ, flags, config_file, Path.cwd()))
    return print_checks(checks, as_json, "A run can start.", "A run cannot start.")


def print_checks(checks: Sequence[DoctorFinding], as_json: bool, good: str, bad: str) -> int:
    """Print what was checked, and the answer; the exit code is 1 where something failed."""
    failures = sum(check.level is Level.FAILURE for check in checks)
    if as_json:
        rows = [{"name": one.name, "level": one.level, "found": one.found, "fix": one.fix} for one in checks]
        click.echo(json.dumps({"can_run": not failures, "checks": rows}, ensure_ascii=False, indent=2))
        return 1 if failures else 0
    for one in checks:
        click.echo(hanging(f"{one.level:<8} {one.name:<12} ", one.found))
        if one.fix:
            click.echo(hanging(f"{'':<21} -> ", one.fix))
    click.echo(f"\n{bad if failures else good}")
    return 1 if failures else 0
