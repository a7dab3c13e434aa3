"""The arrows of the design: who may import whom, and that only one place spells a role's name."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import quintet
from quintet.roles import ROLES

SOURCE = Path(quintet.__file__).parent
LEAVES = {
    "quintet",
    "quintet.actions",
    "quintet.ansi",
    "quintet.changed_tests",
    "quintet.command",
    "quintet.errors",
    "quintet.files",
    "quintet.git",
    "quintet.layout",
    "quintet.own_programs",
    "quintet.processes",
    "quintet.program",
    "quintet.prose",
    "quintet.roles",
    "quintet.supervise",
    "quintet.tokens",
    "quintet.variables",
}
"""modules that all may import, and that import only each other"""
SERVER_LEAVES = {"server.events", "server.names", "server.refusals", "server.state_folder"}
RUNS_AS_SEEN = {
    "api",
    "loop.journal",
    "loop.decide.evidence",
    "loop.decide.state",
    "loop.decide.task",
    "loop.record",
    "workspace.worktrees",
}
MAY_IMPORT: dict[str, set[str]] = {
    "api": set(),
    "config": {"providers.registry", "sandbox.network.rules"},
    "demo": set(),
    "execute": {"api", "config", "loop", "providers", "server", "setup", "watch", "workspace"},
    "fleet": {"config", "execute", "loop", "setup", "watch.runs.folders", "watch.runs.formatting", "workspace"},
    "guard": set(),
    "loop": {"api", "config", "guard", "sandbox", "workspace"},
    "loop.decide": {"config", "loop.journal"},
    "loop.record": {"config", "loop.journal", "loop.decide"},
    "loop.run": {"api", "config", "guard", "sandbox", "workspace", "loop.journal", "loop.decide", "loop.record"},
    "providers": {"api.status"},
    "sandbox": set(),
    "server": {"api", "providers", "sandbox"},
    "server.tmux": set(),
    "server.terminal": {"api", "providers", "sandbox", "server.tmux", *SERVER_LEAVES},
    "server.http": {
        *("api", "providers", "sandbox.network.rules", "server.profiles", "server.terminal", "server.tmux.errors"),
        *SERVER_LEAVES,
    },
    "setup": {"api", "config", "guard", "loop", "providers", "sandbox", "server", "watch", "workspace"},
    "watch": RUNS_AS_SEEN,
    "watch.runs": RUNS_AS_SEEN,
    "watch.report": {"loop.journal", "watch.runs"},
    "watch.dashboard": {"loop.decide.state", "loop.journal", "loop.record", "watch.runs", "workspace.worktrees"},
    "watch.console": {"loop.journal", "watch.runs"},
    "workspace": {"config"},
}
"""what each room, and each room within a room, may import beside itself and the leaves; `cli` may import everything"""


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    return tuple((_name(path), ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(SOURCE.rglob("*.py")))


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(["quintet", *parts]).removesuffix(".__init__")


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All nodes of a module, walked once for all rules."""
    return tuple(ast.walk(tree))


@cache
def imports(tree: ast.Module) -> tuple[str, ...]:
    found: list[str] = []
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return tuple(name for name in found if f"{name}.".startswith("quintet."))


def within(module: str, room: str) -> bool:
    return f"{module}.".startswith(f"quintet.{room}.")


def is_leaf(imported: str) -> bool:
    module, _, name = imported.rpartition(".")
    return module in LEAVES - {"quintet"} or imported in LEAVES or (module == "quintet" and name == "__version__")


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    strangers = [
        f"{module}: {imported}"
        for module, tree in modules()
        if within(module, room)
        for imported in imports(tree)
        if not is_leaf(imported) and not any(within(imported, other) for other in {room, *MAY_IMPORT[room]})
    ]
    assert strangers == []


def test_only_the_terminal_room_talks_to_tmux() -> None:
    users = {
        module
        for module, tree in modules()
        if not within(module, "server.tmux") and any(within(imported, "server.tmux") for imported in imports(tree))
    }
    assert [module for module in users if not within(module, "server.terminal")] == ["quintet.server.http.app"]


def test_every_module_is_in_a_room() -> None:
    outside = {module for module, _ in modules() if not any(within(module, room) for room in {*MAY_IMPORT, "cli"})}
    assert outside == LEAVES | {"quintet.__main__"}


def test_leaves_import_only_each_other() -> None:
    found = [imported for module, tree in modules() if module in LEAVES for imported in imports(tree)]
    assert not [imported for imported in found if not is_leaf(imported)]


def test_nobody_imports_the_command_line() -> None:
    users = {
        module
        for module, tree in modules()
        if not within(module, "cli") and any(within(imported, "cli") for imported in imports(tree))
    }
    assert users == {"quintet.__main__"}


def test_no_other_place_spells_a_role() -> None:
    names = {name for role in ROLES for name in (role.name, role.output)}
    spelled = [
        f"{module}:{node.lineno} {node.value!r}"
        for module, tree in modules()
        if module != "quintet.roles"
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and node.value in names
    ]
    assert spelled == []


FILE_NAMES = (
    ".tmp", ".gitignore", ".quintet", "quintet.json", "schema.json", "journal.jsonl", "quintet-state.json",
    "server.json", "quintet.pid", "agent-responses", "changes.json", "report.md", "report.html",
)  # fmt: skip


def code_texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """The texts in the code of a module, without its docstrings and those below attributes."""
    notes = {id(node.value) for node in nodes(tree) if isinstance(node, ast.Expr)}
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node


def test_only_one_module_knows_the_engine_of_the_queue_and_one_the_driver_of_its_database() -> None:
    users = {
        (module, name.split(".")[0])
        for module, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
        if name.split(".")[0] in ("dbos", "sqlalchemy", "psycopg")
    }
    assert users == {
        ("quintet.fleet.database", "dbos"),
        ("quintet.fleet.database", "sqlalchemy"),
        ("quintet.fleet.reading", "psycopg"),
    }


def test_only_commands_of_the_queue_use_the_fleet() -> None:
    users = {
        module
        for module, tree in modules()
        if not within(module, "fleet") and any(within(imported, "fleet") for imported in imports(tree))
    }
    assert users == {"quintet.cli.queue", "quintet.cli.queue_changes", "quintet.cli.serve", "quintet.cli.workers"}


def test_only_one_module_spells_the_names_of_files() -> None:
    spelled = [
        f"{module}:{node.lineno} {node.value!r}"
        for module, tree in modules()
        if module not in ("quintet.layout", "quintet.files")  # a draft of files ends in .tmp
        for node in code_texts(tree)
        if any(part in FILE_NAMES for part in str(node.value).split("/"))
    ]
    assert spelled == []


def test_only_one_module_runs_git() -> None:
    """A list that begins with "git" is a command; texts for people are joined by shlex."""
    commands = [
        f"{module}:{call.lineno}"
        for module, tree in modules()
        if module != "quintet.git"
        for call in nodes(tree)
        if isinstance(call, ast.Call)
        for given in call.args
        if isinstance(given, ast.List) and given.elts and ast.unparse(given.elts[0]) == "'git'"
        if ast.unparse(call.func) != "shlex.join"
    ]
    assert commands == []


WRITES = {
    "write_text", "write_bytes", "touch", "symlink_to", "hardlink_to",
    "copy", "copy2", "copyfile", "copyfileobj", "copytree", "mkstemp", "NamedTemporaryFile", "O_CREAT", "O_APPEND",
}  # fmt: skip
"""names that write a file, whoever they are asked of"""
MAY_WRITE = ("quintet.files", "quintet.guard.store", "quintet.providers.scripted.")
"""the module for it, the contents of snapshots, which are appended to one open file, and the agent of the tests and
the demo, whose mistakes are scripted"""


MAY_MAKE_FOLDERS = (*MAY_WRITE, "quintet.guard.", "quintet.server.state_folder")
"""also the guard, which makes folders as they were, and the folder of the sockets, which must be the user's own"""


def writes(tree: ast.Module) -> Iterator[str]:
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and node.attr in WRITES:
            if ast.unparse(node.value) not in ("files", "formatter"):  # ours, and the text of a help page
                yield f"{node.lineno} {node.attr}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            given = [*node.args, *(word.value for word in node.keywords if word.arg == "mode")]
            modes = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if name == "open" and any(set(mode) & set("wax+") and len(mode) <= 3 for mode in modes):
                yield f"{node.lineno} open for writing"
            if name == "move" and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "shutil.move":
                yield f"{node.lineno} shutil.move"


def test_only_one_module_writes_files() -> None:
    found = [
        f"{module}:{line}" for module, tree in modules() if not module.startswith(MAY_WRITE) for line in writes(tree)
    ]
    assert found == []


def test_only_one_module_makes_folders() -> None:
    found = [
        f"{module}:{node.lineno}"
        for module, tree in modules()
        if not module.startswith(MAY_MAKE_FOLDERS)
        for node in nodes(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("mkdir", "makedirs")
    ]
    assert found == []


def test_no_class_name_is_used_twice() -> None:
    names = Counter(node.name for _, tree in modules() for node in tree.body if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} == set()
