"""The program under test, or what an agent has left running, tampers with the checks that judge it."""

from dataclasses import replace
from pathlib import Path

import pytest

from quintet.loop.run.protection import Protection
from tests.attacks.checking import CHECK, Checking, checking
from tests.attacks.scene import Attack, acts, attack
from tests.stub.replies import TASK

SANDBOXES = pytest.mark.parametrize("sandbox", ["on", "off"])
WITH_WHOLE_RUNS = pytest.mark.parametrize("sandbox", ["on", pytest.param("off", marks=pytest.mark.attacks)])
REWRITE = "echo true > check.sh || true"
SWAP = "if [ -e kept ]; then cat kept > check.sh; else cp check.sh kept; echo true > check.sh; fi || true"
"""rewrite the check the first time, and put it back the second time"""
WAIT = "touch begun; for i in 1 2 3 4 5 6 7 8 9 10; do test -e rewritten && break; sleep 0.1; done"
"""give somebody else the time to rewrite the check"""
LATER = "until test -e begun; do sleep 0.02; done; echo true > check.sh; touch rewritten; sleep 60"
"""rewrite the check as soon as it runs"""


def verified(*scripts: str) -> str:
    """A task with verify blocks."""
    return TASK + "".join(f"\nThen:\n```verify\n{script}\n```\n" for script in scripts)


def assert_refused(made: Attack) -> None:
    assert made.code == 1, made.evidence
    assert made.run.journal[-1]["event"] == "run_finished"
    assert (made.run.wd / "check.sh").read_text() == CHECK


def with_check(made: Attack) -> Attack:
    """Commit a check that asks for what no agent of the run does."""
    (made.run.wd / "check.sh").write_text(CHECK)
    made.run.git("add", "--all")
    made.run.git("commit", "--quiet", "--message", "Add a check")
    made.settings |= {"PROTECT": "check.sh", "MAX_ROUNDS": "1", "RED_FIRST": "off"}
    return made


@WITH_WHOLE_RUNS
def test_the_program_under_test_rewrites_the_next_check(sandbox: str) -> None:
    """Finding 6."""
    with attack(SANDBOX=sandbox) as made:
        task = verified("sh program.sh", "sh check.sh")
        with_check(made).carry_out({"programmer": [f"echo '{REWRITE}' > program.sh"]}, PROMPT=task)
        assert_refused(made)


@WITH_WHOLE_RUNS
def test_a_process_without_environment_rewrites_the_check_while_it_runs(sandbox: str) -> None:
    """Finding 7."""
    with attack(SANDBOX=sandbox) as made:
        stray = f"env -i PATH=\"$PATH\" setsid sh -c '{LATER}' </dev/null >/dev/null 2>&1 &"
        with_check(made).carry_out({"tester": [stray]}, PROMPT=verified(f"{WAIT}\nsh check.sh"))
        assert_refused(made)
        (told,) = [event["text"] for event in made.events("warned") if "running" in event["text"]]
        assert "now ended" in told


@pytest.mark.attacks
@SANDBOXES
@pytest.mark.parametrize("cut_loose", ["setsid", "(setsid", 'env -i PATH="$PATH" nohup setsid setsid'])
def test_what_no_turn_has_to_end_is_stopped_while_checks_run(sandbox: str, cut_loose: str) -> None:
    """Finding 7: nothing is ended, so that only being stopped keeps it from the check."""
    with attack(SANDBOX=sandbox, END_STRAYS="0") as made:
        end = "&)" if cut_loose.startswith("(") else "&"
        stray = f"{cut_loose} sh -c '{LATER}' </dev/null >/dev/null 2>&1 {end}"
        with_check(made).carry_out({"tester": [stray]}, PROMPT=verified(f"{WAIT}\nsh check.sh"))
        assert made.code == 1, made.evidence
        assert [event["exit_code"] for event in made.events("verified")] == [1]


@pytest.mark.attacks
@SANDBOXES
def test_agents_continue_after_a_run_that_was_killed_during_a_check(sandbox: str) -> None:
    """The agents that the killed process has stopped answer in the next round."""
    with attack(SANDBOX=sandbox, MAX_ROUNDS="2", RED_FIRST="off", GUARD="off") as made:
        script = "touch begun\ntest -e continued || sleep 60\ntest -e second"
        orders = {"programmer": ["test ! -e first || touch second; touch first"]}
        made.run.script(acts(orders))
        shown = str(made.run.root / "scenario.json")
        settings = {**made.settings, "PROMPT": verified(script), "SANDBOX_SHOW": shown}
        process = made.run.start("run", "--plain", **settings)
        made.run.until((made.run.wd / "begun").exists, "a check")
        process.kill()
        process.wait()
        (made.run.wd / "continued").touch()
        made.carry_out(orders, **settings)
        assert made.code == 0, made.evidence
        assert [event["exit_code"] for event in made.events("verified")] == [1, 0]


# -- the same without agents


@SANDBOXES
def test_a_check_that_is_rewritten_and_put_back_does_not_count(tmp_path: Path, sandbox: str) -> None:
    """Finding 23."""
    made = checking(tmp_path, sandbox, {"program.sh": SWAP})
    assert not made.passes("sh program.sh\nsh check.sh\nsh program.sh")
    assert (tmp_path / "check.sh").read_text() == CHECK


@SANDBOXES
@pytest.mark.parametrize(
    ("swap", "back"),
    [
        ("cp -p check.sh kept; echo true > check.sh", "cat kept > check.sh; touch -r kept check.sh"),
        ("cp check.sh kept; echo true > fake; mv fake check.sh", "cp kept check.sh"),
        ("mv check.sh kept && echo true > check.sh", "mv kept check.sh"),
        ("mv check.sh kept && echo true > fake && ln -s fake check.sh", "mv kept check.sh"),
        ("ln check.sh other && cp other kept && echo true > other", "cat kept > other; rm other"),
        ("chmod 600 check.sh; cp check.sh kept; echo true > check.sh; chmod 400 check.sh", "cat kept > check.sh"),
    ],
    ids=["with its time", "by a rename", "moved away", "by a link", "by a second name", "by its mode"],
)
def test_no_way_to_put_a_check_back_is_overlooked(tmp_path: Path, sandbox: str, swap: str, back: str) -> None:
    """Finding 23: every way to swap the check for one that succeeds, and back."""
    made = checking(tmp_path, sandbox, {"swap.sh": swap, "back.sh": back})
    assert not made.passes("sh swap.sh || true\nsh check.sh\nsh back.sh || true")
    assert not made.passes("sh check.sh")
    assert (tmp_path / "check.sh").read_text() == CHECK


def test_a_second_name_of_a_check_is_no_way_to_it(tmp_path: Path) -> None:
    """Finding 23: an agent has given the check a second name in its turn, which is no mount point in the sandbox."""
    made = checking(tmp_path, "on", {"program.sh": "cp other kept; echo true > other; sh check.sh; cat kept > other"})
    (tmp_path / "other").hardlink_to(tmp_path / "check.sh")
    assert not made.passes("sh program.sh")
    assert "check.sh" in made.warnings


@SANDBOXES
@pytest.mark.parametrize("glob", ["checks/deep/check.sh", "checks/deep/**", "checks/**", "**/check.sh"])
def test_the_folder_of_a_check_cannot_be_swapped(tmp_path: Path, sandbox: str, glob: str) -> None:
    """Finding 23: the folder above is moved away, another one takes its place, and it comes back."""
    swap = "mv checks away && mkdir -p checks/deep && echo true > checks/deep/check.sh"
    files = {"checks/deep/check.sh": CHECK, "swap.sh": swap, "back.sh": "rm -r checks && mv away checks"}
    made = checking(tmp_path, sandbox, files, protect=(glob,))
    assert not made.passes("sh swap.sh || true\nsh checks/deep/check.sh\nsh back.sh || true")
    assert (tmp_path / "checks/deep/check.sh").read_text() == CHECK


@SANDBOXES
@pytest.mark.parametrize("glob", ["tests/**", "tests", "tests/*.py", "tests/conftest.py", "**/conftest.py"])
def test_a_new_protected_file_is_seen_although_it_is_gone(tmp_path: Path, sandbox: str, glob: str) -> None:
    """Finding 23: what is protected need not exist yet."""
    files = {"tests/test_it.py": "x = 1\n", "make.sh": "echo x > tests/conftest.py"}
    made = checking(tmp_path, sandbox, files, protect=(glob,))
    assert not made.passes("sh make.sh || true\ntest -e tests/conftest.py\nrm -f tests/conftest.py")


@SANDBOXES
def test_a_protected_file_that_appears_is_gone_before_the_next_check(tmp_path: Path, sandbox: str) -> None:
    """Finding 6: as a file, behind a link, and as a link in place of the folder."""
    made = checking(tmp_path, sandbox, {"tests/test_it.py": "x = 1\n"}, protect=("tests/**",))
    (tmp_path / "tests/conftest.py").write_text("x = 2\n")
    assert made.passes("test ! -e tests/conftest.py")
    assert "tests/conftest.py" in made.warnings
    (tmp_path / "tests").rename(tmp_path / "other")
    (tmp_path / "tests").symlink_to("other")
    assert made.passes("test ! -L tests\ntest -f tests/test_it.py")


@SANDBOXES
def test_what_a_check_leaves_running_ends_with_it(tmp_path: Path, sandbox: str) -> None:
    """Finding 6: a daemon of the first check rewrites the second while that runs."""
    daemon = f'(setsid sh -c \'(env -i PATH="$PATH" setsid sh -c "{LATER}" &)\' </dev/null >/dev/null 2>&1 &)'
    made = checking(tmp_path, sandbox, {"program.sh": daemon})
    assert not made.passes("sh program.sh", f"{WAIT}\ntest ! -e rewritten\nsh check.sh")
    assert not (tmp_path / "rewritten").exists()


def test_a_poisoned_cache_of_a_protected_file_is_gone(tmp_path: Path) -> None:
    """Finding 6: compiled code beside protected tests, with the time of its source."""
    made = checking(tmp_path, "off", {"tests/test_it.py": "x = 1\n"}, protect=("tests/**",))
    cache = tmp_path / "tests/__pycache__/test_it.cpython-311.pyc"
    cache.parent.mkdir()
    cache.write_bytes(b"poison")
    assert made.passes("test ! -e tests/__pycache__/test_it.cpython-311.pyc")


@pytest.mark.parametrize("damage", ["remove", "truncate", "rewrite", "no list"])
def test_without_the_baseline_no_check_counts(tmp_path: Path, damage: str) -> None:
    """Losing the protected files as they were means no PASS."""
    made = checking(tmp_path, "off", {"answer.txt": "42\n"})
    assert made.again().passes("sh check.sh")
    (contents,) = Path(made.protection.folder).glob("contents-*")
    match damage:
        case "remove":
            contents.unlink()
        case "truncate":
            contents.write_bytes(b"")
        case "rewrite":
            contents.write_bytes(b"#" * contents.stat().st_size)
            (tmp_path / "check.sh").write_text("true\n")
        case _:
            (made.protection.folder / "list.json").unlink()
    assert not made.again().passes("sh check.sh")


# -- honest neighbours


@SANDBOXES
def test_honest_checks_keep_working(tmp_path: Path, sandbox: str) -> None:
    files = {
        "answer.txt": "42\n",
        "tests/test_it.py": "def answer():\n    return 42\n",
        "tools/greet": "#!/bin/sh\necho hi\n",
    }
    made = checking(tmp_path, sandbox, files, protect=("check.sh", "tests/**"))
    (tmp_path / "tools/greet").chmod(0o755)
    server = "python3 -c 'import time; time.sleep(60)' & server=$!\nkill $server\nwait $server || true"
    import_test = "cd tests && python3 -c 'import test_it; assert test_it.answer() == 42'"
    written = "echo output > built.txt\nmkdir -p out/deep && touch out/deep/x\nseq 3 | grep -c . | grep -q 3"
    tools = 'PATH="$PWD/tools:$PATH" greet | grep -q hi'
    shared = ("echo x > .tmp/between", "test -e .tmp/between")
    (tmp_path / ".tmp").mkdir(exist_ok=True)
    assert [one.exit_code for one in made.run("sh check.sh", import_test, server, written, tools, *shared)] == [0] * 7
    assert made.warnings == ""
    assert (tmp_path / "built.txt").read_text() == "output\n"


def test_files_that_nobody_protects_may_change(tmp_path: Path) -> None:
    made = checking(tmp_path, "off", {"answer.txt": "42\n"}, protect=())
    assert made.passes("echo true > check.sh", "sh check.sh")
    assert made.warnings == ""


def test_a_guard_that_only_reports_restores_nothing(tmp_path: Path) -> None:
    made = checking(tmp_path, "off", {}, guard="report")
    assert made.passes("echo true > check.sh\nsh check.sh")
    assert "check.sh" in made.warnings
    assert (tmp_path / "check.sh").read_text() == "true\n"


def test_a_run_takes_protected_files_of_new_settings_as_they_are(tmp_path: Path) -> None:
    made = checking(tmp_path, "off", {"answer.txt": "42\n", "more.sh": "true\n"})
    (tmp_path / "more.sh").write_text("exit 0\n")
    (tmp_path / "check.sh").write_text("true\n")
    wider = checking_again(made, ("check.sh", "more.sh"))
    assert wider.passes("sh check.sh\nsh more.sh")
    assert (tmp_path / "check.sh").read_text() == CHECK
    assert (tmp_path / "more.sh").read_text() == "exit 0\n"


def checking_again(made: Checking, globs: tuple[str, ...]) -> Checking:
    """The next process of a run, with other protected files."""
    settings = replace(made.settings, protect=globs)
    return replace(made, settings=settings, protection=Protection(settings, made.store))
