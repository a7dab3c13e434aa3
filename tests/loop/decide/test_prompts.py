"""The prompts: labels, guard lines, back-references and the block that names the response file."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from quintet.config import Agent, Settings
from quintet.errors import PromptError
from quintet.layout import response_path_for
from quintet.loop.decide.prompts import BACK_REFERENCE, NOTHING_YET, Prompts
from quintet.loop.decide.prompts import texts as prompt_texts
from quintet.loop.decide.prompts.own import faults_of
from quintet.loop.decide.prompts.texts import render
from quintet.loop.decide.state import Again, State
from quintet.loop.decide.steps import Ask
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER, Role
from tests.loop.runs import TASK, new_state, settings

OUTPUTS = {
    role.output: f"## Files changed\nthe {role}'s whole output\n## Known limitations\nlimits of {role}"
    for role in ROLES
}
SECTIONS = [
    "Artifact review per file",
    "P1-P4 traceability",
    "Phased delivery coverage",
    "Downstream contract impact",
    "Explicit handoff",
]


def built(role: Role, config: Settings | None = None, *, round: int = 1, cycle: int = 1, **changes: object) -> str:  # noqa: A002
    config = config or settings()
    state = replace(new_state(config), **{"outputs": OUTPUTS} | changes)  # type: ignore[arg-type]
    return Prompts(config, TASK, state).build(Ask(role, round, cycle))


def had(*roles: Role) -> dict[str, str]:
    """Terminals that had their full prompt in an earlier step."""
    return {f"t-{role}": "0-0-earlier" for role in roles}


@pytest.mark.parametrize(
    ("role", "lines"),
    [
        (ANALYST, ["no testing", "no code"]),
        (PEER_ANALYST, ["Review only", "neither artifacts nor code", "not run the scenario"]),
        (
            PROGRAMMER,
            [
                "not run the scenario",
                "nothing destructive",
                "not delete test fixtures",
                "`.tmp/`",
                "temporary directory",
            ],
        ),
        (PEER_PROGRAMMER, ["Review only", "no code", "not run the scenario"]),
        (TESTER, ["Run, observe, report", "Change nothing", "no git"]),
    ],
    ids=str,
)
def test_guard_lines_say_what_a_role_must_not_do(role: Role, lines: list[str]) -> None:
    guard = built(role).partition("Limits of your role:\n")[2].partition("\n\n")[0].lower()
    for line in lines:
        assert line.lower() in guard


@pytest.mark.parametrize("role", ROLES, ids=str)
def test_who_gets_which_part_of_the_task(role: Role) -> None:
    prompt = built(role)
    assert (TASK.explore_summary in prompt) == (role is not TESTER)
    assert (TASK.scenario_test in prompt) == (role in (PROGRAMMER, TESTER))


def test_the_programmer_sees_the_scenario_as_a_reference() -> None:
    assert re.search(rf"read-only reference[^\n]*:\n{re.escape(TASK.scenario_test)}", built(PROGRAMMER))


def test_the_analyst_sees_where_the_run_stands_and_what_was_said() -> None:
    prompt = built(ANALYST, round=2, cycle=3, feedback="the test said", analyst_feedback="the peer said")
    assert "Round 2 of at most 8, review cycle 3 of at most 3." in prompt
    assert "Latest tester feedback:\nthe test said" in prompt
    assert "Latest peer analyst feedback:\nthe peer said" in prompt
    assert built(ANALYST).count(NOTHING_YET) == 2
    assert NOTHING_YET == "None yet."


@pytest.mark.scenario("001", "Analyst prompt structure")
def test_the_analysts_prompt_has_its_parts_in_order() -> None:
    prompt = built(ANALYST, cycle=2, feedback="from the tester", analyst_feedback="from the peer")
    task = (TASK.explore_summary, "Round 1", "cycle 2", "from the tester", "from the peer")
    parts = (*task, "no testing", "no code", "ANALYST_SUMMARY", *SECTIONS, "RESPONSE FILE INSTRUCTION")
    positions = [prompt.find(part) for part in parts]
    assert -1 not in positions
    assert positions == sorted(positions)


def test_the_analysts_summary_has_five_mandatory_sections() -> None:
    form = built(ANALYST).partition("ANALYST_SUMMARY")[2]
    assert re.findall(r"^## (.*)$", form, re.MULTILINE) == SECTIONS
    assert "mandatory" in built(ANALYST)


@pytest.mark.scenario("004", "Analyst prompt structure on round 1")
@pytest.mark.scenario("004", "Analyst prompt on retry round uses explore-then-ff")
def test_the_analyst_is_told_which_skills_to_use() -> None:
    first, retry = built(ANALYST), built(ANALYST, round=2)
    assert "Explore the codebase" in first
    assert "Create/update all OpenSpec artifacts using the OpenSpec fast-forward skill" in first
    assert "/opsx:" in first
    explore = retry.index("Use the OpenSpec explore skill to investigate the test failure")
    assert explore < retry.index("use the OpenSpec fast-forward skill to update the artifacts")
    assert "Explore the codebase" not in retry
    assert "/opsx:" in retry


@pytest.mark.parametrize("role", [ANALYST, PROGRAMMER], ids=str)
@pytest.mark.parametrize("round", [1, 2])
def test_an_agent_without_openspecs_commands_is_told_the_names_of_the_skills(role: Role, round: int) -> None:  # noqa: A002
    agents = settings().agents
    for provider in ("gemini_cli", "my-agent", "goose"):
        own = settings(agents={**agents, role.name: replace(agents[role.name], provider=provider)})
        text = built(role, own, round=round)
        assert "/opsx:" not in text
        assert "(the skill `openspec-" in text
        other = PROGRAMMER if role is ANALYST else ANALYST
        assert "/opsx:" in built(other, own), "each role by its own agent"


def test_prompt_texts_of_the_users_own_keep_their_commands(tmp_path: Path) -> None:
    text = prompt_texts.text_of("analyst").replace("{{explore_skill}}", "`/opsx:explore`")
    (tmp_path / "analyst.md").write_text(text, encoding="utf-8")
    assert list(faults_of(str(tmp_path))) == []
    agents = {role.name: Agent("gemini_cli", role.profile) for role in ROLES}
    built_text = built(ANALYST, settings(prompts_dir=str(tmp_path), agents=agents))
    assert "(`/opsx:explore`)" in built_text
    assert "(the skill `openspec-ff-change`)" in built_text


@pytest.mark.parametrize(("role", "upstream"), [(PEER_ANALYST, ANALYST), (PEER_PROGRAMMER, PROGRAMMER)], ids=str)
@pytest.mark.parametrize("cycle", [1, 2])
def test_reviewers_get_the_full_output(role: Role, upstream: Role, cycle: int) -> None:
    long = OUTPUTS[upstream.output] + "\nline" * 300
    prompt = built(role, cycle=cycle, outputs=OUTPUTS | {upstream.output: long}, full_summary_sent=had(role))
    assert long in prompt


def test_the_programmer_gets_the_condensed_handoff_in_round_one() -> None:
    prompt = built(PROGRAMMER, outputs=OUTPUTS | {"analyst": "## Handoff\nbegin here\n## P1-P4 traceability\nTRACE"})
    assert "System analyst handoff:\n## Handoff\nbegin here\n" in prompt
    assert "TRACE" not in prompt
    assert "Test failure feedback:" not in prompt
    assert "Your previous changes" not in prompt


@pytest.mark.scenario("004", "Programmer prompt on retry round uses test failure context")
def test_the_programmer_gets_the_failure_in_later_rounds() -> None:
    prompt = built(PROGRAMMER, round=2, feedback="it broke", programmer_context_for_retry="I changed a.py")
    assert "Test failure feedback:\nit broke" in prompt
    assert "Your previous changes (context):\nI changed a.py" in prompt
    assert "System analyst handoff:" not in prompt
    assert "Your previous changes" not in built(PROGRAMMER, round=2, feedback="it broke")


def test_the_tester_gets_no_known_limitations() -> None:
    prompt = built(TESTER)
    assert "the programmer's whole output" in prompt
    assert "limits of programmer" not in prompt


@pytest.mark.scenario("001", "First send includes full summary")
@pytest.mark.scenario("001", "Repeat send returns condensed")
@pytest.mark.parametrize("role", ROLES[:4], ids=str)
def test_the_summary_is_sent_once_to_a_terminal(role: Role) -> None:
    assert TASK.explore_summary in built(role)
    again = built(role, cycle=2, full_summary_sent=had(role))
    assert TASK.explore_summary not in again
    assert BACK_REFERENCE in again
    assert TASK.explore_summary in built(role, cycle=2, full_summary_sent=had(*set(ROLES) - {role}))
    whole = settings(condense_explore_on_repeat=False)
    assert TASK.explore_summary in built(role, whole, cycle=2, full_summary_sent=had(role))
    assert BACK_REFERENCE == "(Same as initial turn -- refer to your conversation history.)"


def test_a_prompt_that_is_sent_again_is_the_same() -> None:
    """A run that stops between the dispatch and the reply still has to know what it sent."""
    state = new_state(settings())
    step = Ask(ANALYST, 1, 1)
    sent = replace(state, full_summary_sent={"t-analyst": step.key}, dispatched=step.key)
    assert Prompts(settings(), TASK, sent).build(step) == Prompts(settings(), TASK, state).build(step)


@pytest.mark.scenario("001", "Programmer prompt condenses upstream on repeat")
@pytest.mark.scenario("004", "Programmer prompt condenses upstream on repeat")
def test_the_handoff_is_a_reference_when_it_is_repeated() -> None:
    handoff = f"System analyst handoff:\n{BACK_REFERENCE}"
    assert handoff in built(PROGRAMMER, cycle=2, full_summary_sent=had(PROGRAMMER))
    assert handoff not in built(PROGRAMMER, cycle=1, full_summary_sent=had(PROGRAMMER))
    assert handoff not in built(PROGRAMMER, cycle=2), "a terminal that never had it gets it whole"
    whole = settings(condense_upstream_on_repeat=False)
    assert handoff not in built(PROGRAMMER, whole, cycle=2, full_summary_sent=had(PROGRAMMER))


def test_the_reviewer_of_the_code_is_told_what_to_run() -> None:
    assert "pytest -q" in built(PEER_PROGRAMMER, settings(project_test_cmd="pytest -q"))
    assert "NOT_RUN" in built(PEER_PROGRAMMER)


@pytest.mark.parametrize("round_", [1, 2])
def test_the_programmer_is_told_how_the_tests_are_run(round_: int) -> None:
    told = "The project's tests are run with: pytest -q\n"
    assert told in built(PROGRAMMER, settings(project_test_cmd="pytest -q"), round=round_)
    assert "The project's tests" not in built(PROGRAMMER, round=round_)


def test_the_programmer_of_a_retry_investigates_first_and_may_change_the_specification() -> None:
    first, retry = built(PROGRAMMER), built(PROGRAMMER, round=2, feedback="it crashed")
    words = [
        "1. Investigate the test failure first",
        "Then mend the cause",
        "you may update the OpenSpec artifacts",
        "Then say so",
        "## Specification changes",
    ]
    places = [retry.index(word) for word in words]
    assert places == sorted(places)
    assert [word for word in words if word in first] == []


@pytest.mark.scenario("000", "Analyst prompt includes file instruction")
@pytest.mark.scenario("000", "All five agent roles have file instructions")
@pytest.mark.parametrize("role", ROLES, ids=str)
@pytest.mark.parametrize("folder", ["/project", '/my project/it\'s "ü"', "/a\nb/$HOME"])
def test_the_response_file_is_named_by_its_absolute_path(role: Role, folder: str) -> None:
    config = Settings(wd=Path(folder))
    block = built(role, config).partition("RESPONSE FILE INSTRUCTION\n")[2]
    path = f"{folder}/.tmp/agent-responses/{role.response_file}"
    assert path in block
    assert f"cat > {shlex.quote(path)} <<'QUINTET_END_" in block
    assert shlex.split(shlex.quote(path)) == [path]


def markers(prompt: str) -> list[str]:
    return re.findall(r"QUINTET_END_[0-9A-F]{16}", prompt)


def test_the_end_marker_is_unique_for_every_prompt_and_run() -> None:
    state = new_state(settings())
    steps = [Ask(role, number, cycle) for role in ROLES for number in (1, 2) for cycle in (1, 2)]
    steps += [Ask(TESTER, 1, 1, again=Again.VERDICT), Ask(TESTER, 2, 1, again=Again.VERDICT)]
    states = [state, replace(state, run_id="run-2"), replace(state, run_id="\ud800")]
    prompts = [Prompts(settings(), TASK, one).build(step) for one in states for step in steps]
    assert all(len(set(markers(prompt))) == 1 and len(markers(prompt)) == 2 for prompt in prompts)
    assert len({markers(prompt)[0] for prompt in prompts}) == len(prompts)


def test_asking_again_wants_only_the_verdict() -> None:
    prompt = Prompts(settings(), TASK, new_state(settings())).build(Ask(TESTER, 1, 1, again=Again.VERDICT))
    assert "RESULT: <PASS or FAIL>" in prompt
    assert "not run the scenario again" in prompt
    assert str(response_path_for(TESTER, settings().wd)) in prompt


def test_what_a_value_contains_is_never_a_slot() -> None:
    text = "{{explore}} {{nothing}} {{?retry}}x{{/retry}} \\1 \\g<0>"
    assert text in built(PEER_ANALYST, outputs=OUTPUTS | {"analyst": text})


def test_an_unknown_slot_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("{{unknown}}", "{{?unknown}}x{{/unknown}}", "{{ explore }}", "{{?explore}}never closed"):
        monkeypatch.setattr(prompt_texts, "text_of", lambda *_, text=text: text)
        with pytest.raises(PromptError, match=r"analyst\.md: unknown slot"):
            render("analyst", {"explore": "x"})


def test_an_old_state_without_terminals_still_gives_whole_prompts() -> None:
    prompt = Prompts(settings(), TASK, State()).build(Ask(ANALYST, 1, 1))
    assert TASK.explore_summary in prompt
