"""What a change does to a project's tests, by patterns: files deleted, tests and assertions removed, skips added.

These are facts for readers, no judgement: a test may go for good reasons. What only moved to another file is not gone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

from pydantic import Field

from quintet import git
from quintet.errors import GitError
from quintet.layout import NOT_TMP
from quintet.prose import plural

MOST_FILES: Final = 300
"""changed test files that are looked at"""
_LARGEST: Final = 500_000
"""bytes of a file that are looked at"""
_LONGEST_LINE: Final = 1000
_SECONDS: Final = 15.0
_NAMED: Final = 3
"""tests of a file that are named"""


@dataclass(frozen=True)
class Language:
    """How tests look in a language."""

    tests: re.Pattern[str]
    """a test; its groups hold its name"""
    assertions: re.Pattern[str]
    skips: re.Pattern[str]
    """what keeps tests from running, or others from running beside them"""
    inline: str = ""
    """where tests stand in the same files as the code: what begins them"""


def _language(tests: str, assertions: str, skips: str, inline: str = "") -> Language:
    return Language(re.compile(tests, re.MULTILINE), re.compile(assertions), re.compile(skips), inline)


_ATTRIBUTES: Final = r"[^{};]{0,400}?"
_PYTHON = _language(
    r"^[ \t]*(?:async[ \t]+)?def[ \t]+(test\w*)",
    r"^\s*assert\b|\bself\.assert\w+\(|\bpytest\.(?:raises|warns|fail)\b|\.assert_\w+\(",
    r"@(?:pytest\.)?mark\.(?:skip|xfail)|\bpytest\.(?:skip|xfail|importorskip)\(|@(?:unittest\.)?(?:skip|expectedFail)"
    r"|\bSkipTest\b|\.skipTest\(",
)
_JAVASCRIPT = _language(
    r"\b[xf]?(?:it|test|specify)(?:\.\w+){0,3}[ \t]*\([ \t]*(['\"`][^\n]{1,200}?['\"`])[ \t]*,",
    r"\bexpect(?:\.\w+)*\(|\bassert(?:\.\w+)*\(|\.should\b|\bt\.(?:is|not|true|false|deepEqual|throws|equal)\(",
    r"\b(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|todo|fixme|failing|only)\b"
    r"|\b(?:x|f)(?:it|test|describe|context|specify)\s*\(|\bthis\.skip\(",
)
_JVM = _language(
    r"@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b"
    + _ATTRIBUTES
    + r"\b(?:void|fun)\s+(`[^`]+`|\w+)",
    r"\bassert\w*\s*[({]|\bverify\w*\(|\bshould\w*\b|\bfail\(",
    r"@(?:Disabled|Ignore|Ignored)\b|\bassume(?:True|False|That)\(|\bassumingThat\(",
)
LANGUAGES: Final[Mapping[str, Language]] = {
    ".py": _PYTHON,
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte"), _JAVASCRIPT),
    **dict.fromkeys((".java", ".kt", ".kts", ".groovy", ".scala"), _JVM),
    ".go": _language(
        r"^func[ \t]+((?:Test|Benchmark|Fuzz|Example)\w*)[ \t]*\(|\bt\.Run\([ \t]*(\"[^\"\n]{1,200}\")",
        r"\b[tbf]\.(?:Error|Fatal|Fail)\w*\(|\b(?:assert|require)\.\w+\(|\bcmp\.Diff\(",
        r"\b[tbf]\.Skip\w*\(",
    ),
    ".rs": _language(
        r"#\[(?:\w+::){0,3}(?:test|rstest|test_case)\b" + _ATTRIBUTES + r"\bfn\s+(\w+)",
        r"\b(?:debug_)?assert\w*!|#\[should_panic|\bpanic!",
        r"#\[ignore\b",
        inline="#[cfg(test)]",
    ),
    ".cs": _language(
        r"\[(?:Fact|Theory|Test|TestCase|TestMethod|DataTestMethod)\b" + _ATTRIBUTES
        + r"\b(\w+)\s*\([^)\n]{0,400}\)\s*(?:[{=]|$)",
        r"\bAssert\.\w+|\.Should\w*\(|\bShould\.\w+",
        r"\[(?:\w+,\s*)?Ignore\b|\bSkip\s*=|\bAssert\.(?:Ignore|Inconclusive|Skip)\b|\bSkip\.If",
    ),
    ".rb": _language(
        r"^[ \t]*def[ \t]+(test_\w+[?!]?)"
        r"|^[ \t]*x?(?:it|specify|test|scenario|example)[ \t(]+(['\"][^\n]{1,200}?['\"])",
        r"\b(?:assert|refute)\w*\b|\bexpect\b[\s({]|\.should\w*\b|\b(?:must|wont)_\w+",
        r"^\s*(?:skip|pending|xit|xdescribe|xcontext|xspecify|fit|fdescribe)\b|\bskip:\s|\bpending:\s",
    ),
    ".php": _language(
        r"\bfunction[ \t]+(test\w+)|(?:#\[Test\]|@test\b)" + _ATTRIBUTES + r"\bfunction[ \t]+(\w+)"
        r"|^[ \t]*(?:it|test)\([ \t]*(['\"][^\n]{1,200}?['\"])",
        r"(?:->|::)assert\w+\(|\bexpect\(|\bexpectException|\bassert\(",
        r"\bmarkTest(?:Skipped|Incomplete)\b|->(?:skip|todo|only)\(|@group\s+skip",
    ),
    **dict.fromkeys(
        (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp"),
        _language(
            r"\b(?:TYPED_)?TEST(?:_[FP])?[ \t]*\([ \t]*(\w+[ \t]*,[ \t]*\w+)"
            r"|\b(?:TEST_CASE|SCENARIO|SECTION|SUBCASE)[ \t]*\([ \t]*(\"[^\"\n]{1,200}\")"
            r"|\bBOOST_(?:AUTO|FIXTURE)_TEST_CASE\([ \t]*(\w+)|^(?:static[ \t]+)?void[ \t]+(test_\w+)[ \t]*\(",
            r"\b(?:EXPECT|ASSERT|TEST_ASSERT|BOOST_(?:CHECK|REQUIRE|TEST)|REQUIRE|CHECK)\w*\s*\(|\bassert\w*\s*\(",
            r"\bGTEST_SKIP\b|\bDISABLED_\w|\bSKIP\s*\(|\bTEST_IGNORE\b|\[\.\]|\[!shouldfail\]",
        ),
    ),
    **dict.fromkeys(
        (".sh", ".bash", ".bats"),
        _language(
            r"^[ \t]*@test[ \t]+(['\"][^\n]{1,200}?['\"])[ \t]*\{|^[ \t]*(?:function[ \t]+)?(test_\w+)[ \t]*\(\)",
            r"^\s*(?:assert|refute)\w*\b|^\s*!?\s*(?:\[\[?|grep|diff|cmp|test)\s|\|\|\s*(?:exit|return|fail|die)\b",
            r"^\s*skip\b|\bstartSkipping\b",
        ),
    ),
}  # fmt: skip
_FOLDERS: Final = frozenset({"test", "tests", "spec", "specs", "__tests__", "e2e", "testing"})
_NAMES = re.compile(
    r"test_.*|tests?|.*[._-](?:test|tests|spec|specs|unit|e2e)|.*(?:Test|Tests|Spec|Specs|TestCase|IT)|Test[A-Z].*"
)


def is_test_file(path: str) -> bool:
    """Whether a file holds tests, by its name or its folder, in a language that is known here."""
    name = PurePosixPath(path)
    if name.suffix not in LANGUAGES:
        return False
    in_folder = any(part.lower() in _FOLDERS for part in name.parts[:-1])
    return name.suffix == ".bats" or in_folder or _NAMES.fullmatch(name.stem) is not None


def may_hold_tests(path: str) -> bool:
    """Whether a file may hold tests, beside code too."""
    language = LANGUAGES.get(PurePosixPath(path).suffix)
    return language is not None and (bool(language.inline) or is_test_file(path))


Count = Annotated[int, Field(strict=True, ge=0, le=10**9)]


@dataclass(frozen=True)
class FileLoss:
    """What a file has lost of its tests."""

    path: str
    deleted: bool = False
    tests: tuple[str, ...] = ()
    """the names of tests that are gone"""
    assertions: Count = 0
    """how many are gone, beside those in place of which others stand"""
    skips: Count = 0
    """how many were added"""

    @property
    def words(self) -> str:
        """For instance `2 tests removed (test_a, test_b), 1 skip added`."""
        named = ", ".join(self.tests[:_NAMED]) + (", ..." if len(self.tests) > _NAMED else "")
        parts = (
            "deleted" if self.deleted else "",
            f"{plural(len(self.tests), 'test')} removed ({named})" if self.tests else "",
            f"{plural(self.assertions, 'assertion')} removed" if self.assertions else "",
            f"{plural(self.skips, 'skip')} added" if self.skips else "",
        )
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True)
class TestLosses:
    """What a change takes away from the tests."""

    __test__ = False

    files: tuple[FileLoss, ...] = ()

    @property
    def words(self) -> str:
        """All of it in one line; empty where nothing was taken away."""
        counts = (
            (sum(file.deleted for file in self.files), "test file", "deleted"),
            (sum(len(file.tests) for file in self.files), "test", "removed"),
            (sum(file.assertions for file in self.files), "assertion", "removed"),
            (sum(file.skips for file in self.files), "skip", "added"),
        )
        return ", ".join(f"{plural(number, what)} {how}" for number, what, how in counts if number)

    @property
    def lines(self) -> list[str]:
        """One line for each file."""
        return [f"{file.path}: {file.words}" for file in self.files]


@dataclass(frozen=True)
class _Found:
    """What a text holds of tests."""

    tests: Counter[str]
    assertions: Counter[str]
    skips: Counter[str]


def losses(before: Mapping[str, str], after: Mapping[str, str]) -> TestLosses:
    """What is lost from the texts of files, by path, as they were and as they are; a file that is not there is gone."""
    old = {path: _find(path, text) for path, text in before.items()}
    new = {path: _find(path, text) for path, text in after.items()}
    nothing = _Found(Counter(), Counter(), Counter())
    pairs = {path: (old.get(path, nothing), new.get(path, nothing)) for path in sorted({*old, *new})}
    # what has gone from one file and come to another has moved
    come_tests = _sum(now.tests - was.tests for was, now in pairs.values())
    come_lines = _sum(now.assertions - was.assertions for was, now in pairs.values())
    gone_skips = _sum(was.skips - now.skips for was, now in pairs.values())
    come_files = Counter(PurePosixPath(path).name for path in new.keys() - old.keys())
    found = []
    for path, (was, now) in pairs.items():
        tests = _not_in(was.tests - now.tests, come_tests)
        gone = _not_in(was.assertions - now.assertions, come_lines).total()
        changed = (now.assertions - was.assertions).total()
        skips = _not_in(now.skips - was.skips, gone_skips).total()
        deleted = path not in new and is_test_file(path) and not _take(come_files, PurePosixPath(path).name)
        lost = FileLoss(path, deleted, tuple(tests.elements()), max(gone - changed, 0), skips)
        if lost != FileLoss(path):
            found.append(lost)
    return TestLosses(tuple(found))


def look(wd: Path, start: str) -> TestLosses:
    """What the work tree has lost of its tests since a commit; nothing where git cannot tell."""
    if not git.is_hash(start):
        return TestLosses()
    try:
        names = git.run(wd, "diff", "--name-only", "--no-renames", "--relative", "-z", start, "--", ".", NOT_TMP)
        new = git.run(wd, "ls-files", "--others", "--exclude-standard", "-z", "--", ".", NOT_TMP)
        paths = [path for path in (*names.parts, *new.parts) if may_hold_tests(path) and "\n" not in path]
        return losses(_committed(wd, start, paths[:MOST_FILES]), _present(wd, paths[:MOST_FILES]))
    except GitError:
        return TestLosses()


def _committed(wd: Path, start: str, paths: Iterable[str]) -> dict[str, str]:
    """The files of a commit."""
    found, wanted = {}, list(paths)
    asked = "".join(f"{start}:./{path}\n" for path in wanted).encode("utf-8", "surrogateescape")
    out = git.run(wd, "cat-file", "--batch", feed=asked, seconds=_SECONDS).out if wanted else b""
    at = 0
    for path in wanted:
        end = out.index(b"\n", at)
        head = out[at:end].rsplit(b" ", 2)
        at = end + 1
        if len(head) == 3 and head[1] == b"blob":  # noqa: PLR2004 - name, kind, size
            size = int(head[2])
            found[path] = out[at : at + min(size, _LARGEST)].decode("utf-8", "replace")
            at += size + 1
    return found


def _present(wd: Path, paths: Iterable[str]) -> dict[str, str]:
    found = {}
    for path in paths:
        try:
            if not (wd / path).is_symlink():
                with (wd / path).open("rb") as file:
                    found[path] = file.read(_LARGEST).decode("utf-8", "replace")
        except OSError:
            continue  # it is gone
    return found


def _find(path: str, text: str) -> _Found:
    language = LANGUAGES[PurePosixPath(path).suffix]
    if language.inline and not is_test_file(path):
        text = text.partition(language.inline)[2]
    lines = [line.strip()[:_LONGEST_LINE] for line in text.split("\n")]
    names = (next(filter(None, found.groups())) for found in language.tests.finditer(text))
    return _Found(
        Counter(" ".join(name.split()) for name in names),
        Counter(line for line in lines if language.assertions.search(line)),
        Counter(line for line in lines if language.skips.search(line)),
    )


def _sum(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def _not_in(counter: Counter[str], elsewhere: Counter[str]) -> Counter[str]:
    """What is not found elsewhere; what is found there is used up."""
    found = counter & elsewhere
    elsewhere.subtract(found)
    return counter - found


def _take(counter: Counter[str], name: str) -> bool:
    if counter[name] <= 0:
        return False
    counter[name] -= 1
    return True
