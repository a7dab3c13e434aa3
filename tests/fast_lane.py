"""`make unit`, the fast lane: the test modules that start no process and open no socket."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).parent
WAITING: Final = frozenset(
    {"asyncio", "fastapi", "httpx", "multiprocessing", "psutil", "pty", "socket", "subprocess", "threading", "uvicorn"}
)
"""libraries that start processes or threads or open sockets: a test that needs one waits for something"""
FORBIDDEN: Final = frozenset(
    {"os.exec", "os.fork", "os.posix_spawn", "socket.bind", "socket.connect", "subprocess.Popen"}
)
"""audit events of Python that no test of the lane may cause"""


def in_fast_lane(module: Path) -> bool:
    """Whether neither the module, nor its conftest, nor a helper that it imports needs one of the libraries."""
    todo, seen = [module, *(folder / "conftest.py" for folder in module.parents if TESTS in folder.parents)], set()
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        names = _imported(path)
        if any(name.partition(".")[0] in WAITING for name in names):
            return False
        ours = (name for name in names if name.startswith(("harness.", "tests.", "tools.")))
        todo += [TESTS.parent / (name.replace(".", "/") + ".py") for name in ours]
    return True


@cache
def _imported(path: Path) -> frozenset[str]:
    """The names of all modules that a file may import; of `from a import b` both `a` and `a.b`."""

    def names() -> Iterator[str]:
        for node in _statements(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)

    return frozenset(names())


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node; expressions, most of a tree, are not looked into."""
    for _, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else ():
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield child
                yield from _statements(child)


def forbid_processes_and_sockets() -> None:
    """Fail the test that starts a process or opens a socket through the code that it tests."""

    def fail(event: str, _: tuple[object, ...]) -> None:
        if event in FORBIDDEN:
            pytest.fail(f"{event} in the fast lane: mark the test with pytest.mark.slow")

    sys.addaudithook(fail)
