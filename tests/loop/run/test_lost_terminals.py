"""Terminals that are gone, as after a reboot, on our own server: the run goes on with new ones."""

from tests.watch.scripted import scripted, story


def test_a_run_whose_terminals_are_gone_goes_on_with_new_ones() -> None:
    with scripted(story(think=0.2)) as project:
        first = project.start("run", "--plain")
        project.until_there("*/prompts/004-analyst_review.md")  # the reply before it is safely in the state
        first.kill()
        first.wait()
        project.kill_tmux()  # what a reboot does to the terminals
        code, said = project.call("run", "--plain")
        assert code == 0, said
        assert said.count("(it is gone); it is started again") == 5
        resumed = next(number for number, event in enumerate(project.journal) if event["event"] == "run_resumed")
        again = [event for event in project.journal[resumed:] if event["event"] == "prompt_sent"]
        replies = [event["step"] for event in project.journal if event["event"] == "reply_taken"]
        assert len(replies) == len(set(replies)), "a step whose answer was taken is never asked for again"
        assert again, "the rest of the run"
        prompts = {
            event["role"]: (project.folder / event["file"]).read_text(encoding="utf-8") for event in reversed(again)
        }
        summary = "Add a greeting."
        assert all(summary in prompt for role, prompt in prompts.items() if role != "tester"), (
            "fresh agents know nothing"
        )
