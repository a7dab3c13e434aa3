"""What honest agents do in the sandbox keeps working."""

from tests.attacks.scene import attack


def test_an_honest_run_passes() -> None:
    with attack() as made:
        made.carry_out({"programmer": ["echo 42 > answer.txt"]}, POST_GIT_COMMIT="1")
        assert made.code == 0, made.evidence
        assert made.events("warned") == []
        assert made.run.git("show", "HEAD:answer.txt") == "42"
