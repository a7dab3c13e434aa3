"""What a change does to tests, in the common languages."""

import subprocess
from pathlib import Path

import pytest

from quintet.changed_tests import FileLoss, TestLosses, is_test_file, look, losses

SAMPLES = {
    "tests/test_a.py": (
        "def test_one():\n    assert x == 1\n    assert y\n\n\nasync def test_two(self):\n    self.assertEqual(a, b)\n",
        "@pytest.mark.skip\ndef test_one():\n    assert x == 1\n",
        ("test_two",),
        2,
    ),
    "src/a.test.ts": (
        "it('adds', () => {\n  expect(a).toBe(1)\n  expect(b).toBe(2)\n})\n"
        "test(`goes`, async () => {\n expect(c)\n})\n",
        "it.skip('adds', () => {\n  expect(a).toBe(1)\n})\n",
        ("`goes`",),
        2,
    ),
    "a_test.go": (
        "func TestA(t *testing.T) {\n\tt.Errorf(1)\n}\n"
        "func TestB(t *testing.T) {\n\trequire.Equal(t, 1)\n\tt.Fatal(1)\n}\n",
        "func TestA(t *testing.T) {\n\tt.Skip()\n}\n",
        ("TestB",),
        3,
    ),
    "src/lib.rs": (
        "fn f() { assert!(true) }\n#[cfg(test)]\nmod tests {\n#[test]\nfn a() {\n assert_eq!(1, 1);\n}\n"
        "#[tokio::test]\nasync fn b() {\n assert!(2 > 1);\n}\n}\n",
        "fn f() { }\n#[cfg(test)]\nmod tests {\n#[test]\n#[ignore]\nfn a() {\n}\n}\n",
        ("b",),
        2,
    ),
    "src/test/java/ATest.java": (
        "@Test\npublic void adds() {\n  assertEquals(1, 1);\n}\n@Test void goes() {\n  assertThat(x).isTrue();\n}\n",
        "@Disabled\n@Test\npublic void adds() {\n}\n",
        ("goes",),
        2,
    ),
    "src/test/kotlin/ATest.kt": (
        "@Test\nfun `adds two`() {\n  assertEquals(1, 1)\n}\n@Test fun goes() {\n  x shouldBe 1\n}\n",
        "@Ignore\n@Test\nfun `adds two`() {\n}\n",
        ("goes",),
        2,
    ),
    "Project.Tests/ATests.cs": (
        "[Fact]\npublic void Adds()\n{\n  Assert.Equal(1, 1);\n}\n"
        "[Theory, InlineData(1)]\npublic async Task Goes(int x)\n{\n  x.Should().Be(1);\n}\n",
        '[Fact(Skip = "later")]\npublic void Adds()\n{\n}\n',
        ("Goes",),
        2,
    ),
    "spec/a_spec.rb": (
        "it 'adds' do\n  expect(a).to eq(1)\nend\nit \"goes\" do\n  expect { b }.to raise_error\nend\n",
        "xit 'adds' do\nend\n",
        ('"goes"',),
        2,
    ),
    "tests/ATest.php": (
        "public function testAdds() {\n $this->assertSame(1, 1);\n}\n"
        "#[Test]\npublic function goes() {\n self::assertTrue(1);\n}\n",
        "public function testAdds() {\n $this->markTestSkipped();\n}\n",
        ("goes",),
        2,
    ),
    "tests/a.cpp": (
        'TEST(A, Adds) {\n  EXPECT_EQ(1, 1);\n}\nTEST_CASE("goes") {\n  REQUIRE(x);\n}\n',
        "TEST(A, Adds) {\n  GTEST_SKIP();\n}\n",
        ('"goes"',),
        2,
    ),
    "check.bats": (
        '@test "adds" {\n  [ 1 = 1 ]\n}\n@test "goes" {\n  assert_success\n}\n',
        '@test "adds" {\n  skip\n}\n',
        ('"goes"',),
        2,
    ),
}


@pytest.mark.parametrize("path", SAMPLES)
def test_each_language(path: str) -> None:
    before, after, tests, assertions = SAMPLES[path]
    assert losses({path: before}, {path: after}).files == (FileLoss(path, False, tests, assertions, 1),)
    assert losses({path: before}, {path: before}) == TestLosses()
    assert losses({path: after}, {path: before}).words == "", "what is added is no loss"
    gone = losses({path: before}, {})
    assert len(gone.files[0].tests) == 2
    assert gone.files[0].deleted is is_test_file(path)


def test_what_moves_or_changes_is_not_gone() -> None:
    before = SAMPLES["tests/test_a.py"][0]
    assert losses({"tests/test_a.py": before}, {"tests/unit/test_a.py": before}) == TestLosses()
    assert losses({"tests/test_a.py": before}, {"tests/test_b.py": before}).words == "1 test file deleted"
    one, other = "def test_x():\n    assert a == 1\n", "def test_x():\n    assert a == 2\n"
    assert losses({"test_x.py": one}, {"test_x.py": other}) == TestLosses(), "one assertion stands for another"
    renamed = "def test_y():\n    assert a == 1\n"
    assert losses({"test_x.py": one}, {"test_x.py": renamed}).words == "1 test removed"


def test_more_tests_elsewhere_do_not_hide_a_loss() -> None:
    before = {"test_x.py": "def test_x():\n    assert a == 1\n    assert b == 2\n"}
    after = {"test_x.py": "def test_x():\n    assert a == 1\n", "test_new.py": "def test_n():\n    assert c\n" * 5}
    assert losses(before, after).words == "1 assertion removed"


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("tests/helper.py", True), ("test_a.py", True), ("a_test.go", True), ("src/a.spec.tsx", True),
        ("src/__tests__/a.js", True), ("src/ATest.java", True), ("a_spec.rb", True), ("latest.py", False),
        ("contest.js", False), ("src/main.go", False), ("tests/data.json", False), ("attestation.cs", False),
    ],
)  # fmt: skip
def test_which_files_hold_tests(path: str, holds: bool) -> None:
    assert is_test_file(path) is holds


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    wd = tmp_path / "repository" / "part"
    (wd / "tests").mkdir(parents=True)
    git(tmp_path, "init", "--quiet", "repository")
    (wd / "tests/test_a.py").write_text(SAMPLES["tests/test_a.py"][0])
    (wd / "tests/test_[b] c.py").write_text("def test_b():\n    assert 1\n")
    (wd / "tests/test_moved.py").write_text("def test_m():\n    assert 2\n")
    (wd / "code.py").write_text("def f(): ...\n")
    git(wd, "add", "--all")
    git(wd, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "Begin")
    return wd


def test_the_work_tree_since_a_commit(project: Path) -> None:
    start, index = git(project, "rev-parse", "HEAD"), (project.parent / ".git/index").read_bytes()
    assert look(project, start) == TestLosses()
    (project / "tests/test_a.py").write_text(SAMPLES["tests/test_a.py"][1])
    (project / "tests/test_[b] c.py").unlink()
    (project / "tests/unit").mkdir()
    (project / "tests/test_moved.py").rename(project / "tests/unit/test_moved.py")
    (project / ".tmp").mkdir()
    (project / ".tmp/test_b.py").write_text("def test_b():\n    assert 1\n")
    found = look(project, start)
    assert found.lines == [
        "tests/test_[b] c.py: deleted, 1 test removed (test_b), 1 assertion removed",
        "tests/test_a.py: 1 test removed (test_two), 2 assertions removed, 1 skip added",
    ]
    assert found.words == "1 test file deleted, 2 tests removed, 3 assertions removed, 1 skip added"
    assert (project.parent / ".git/index").read_bytes() == index, "the user's index is not touched"


def test_where_git_cannot_tell(project: Path, tmp_path: Path) -> None:
    assert look(tmp_path, "HEAD") == TestLosses()
    assert look(project, "0" * 40) == TestLosses()
    assert look(project, "") == TestLosses()
    assert look(project, "--output=written") == TestLosses()
    assert not (project / "written").exists(), "a state file may be anybody's: what it names as a commit is no option"
