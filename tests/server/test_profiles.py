"""The five profiles: what they demand is what the gates accept."""

import re

import pytest

from quintet.errors import ProfileError
from quintet.loop.decide.condense import (
    condense_for_programmer,
    condense_for_tester,
    extract_review_notes,
    extract_test_evidence,
)
from quintet.loop.decide.gate import Verdict, is_review_approved, read_review_verdict, read_test_verdict
from quintet.loop.decide.prompts.texts import text_of
from quintet.roles import ANALYST, PEER_ANALYST, PEER_PROGRAMMER, PROGRAMMER, ROLES, TESTER, Role
from quintet.server.profiles import load_profile, parse_profile, shipped_names
from tests.loop.runs import settings

REVIEWERS = [PEER_ANALYST, PEER_PROGRAMMER]


def form_of(role: Role) -> str:
    """The form that a profile demands."""
    (form,) = re.findall(r"```text\n(.*?)```", load_profile(role.profile).instructions, re.DOTALL)
    return str(form)


def filled(role: Role, verdict: str = "") -> str:
    """The form as an agent fills it in that adds nothing to what it is asked for."""
    form = re.sub(r"<[A-Z]+ or [A-Z]+>", verdict, form_of(role))
    return re.sub(r"<[^>]*>", "done", form)


@pytest.mark.parametrize("role", ROLES, ids=str)
def test_profile_and_prompt_demand_the_same_form(role: Role) -> None:
    always = re.sub(r"\{\{\?(\w+)\}\}.*?\{\{/\1\}\}\n", "", text_of(role.output), flags=re.DOTALL)
    assert form_of(role).strip() in always


@pytest.mark.parametrize("role", REVIEWERS, ids=str)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_review_in_exactly_its_form_is_approved(role: Role, wrapped: bool) -> None:
    review = filled(role, "APPROVED")
    review = f"```text\n{review}```\n" if wrapped else review
    assert is_review_approved(review, role.phase, 2, settings(review_evidence_min_match=4))


@pytest.mark.parametrize("role", REVIEWERS, ids=str)
def test_a_form_with_only_the_verdict_filled_in_is_not_approved(role: Role) -> None:
    assert read_review_verdict(form_of(role)) is None
    lazy = form_of(role).replace("<APPROVED or REVISE>", "APPROVED")
    assert read_review_verdict(lazy) is Verdict.APPROVED
    assert not is_review_approved(lazy, role.phase, 2, settings())


@pytest.mark.parametrize("role", REVIEWERS, ids=str)
def test_a_revise_in_its_form_asks_for_its_changes(role: Role) -> None:
    review = filled(role, "REVISE").replace("Required changes:\n- done", "Required changes:\n- this one")
    assert read_review_verdict(review) is Verdict.REVISE
    assert "- this one" in extract_review_notes(review, settings())


@pytest.mark.parametrize("verdict", ["PASS", "FAIL"])
def test_a_report_in_exactly_its_form_is_read(verdict: str) -> None:
    assert read_test_verdict(form_of(TESTER)) is None
    report = filled(TESTER, verdict)
    assert read_test_verdict(report) == verdict
    assert extract_test_evidence(report, settings()).startswith(f"RESULT: {verdict}\nEVIDENCE:\n- done")


def test_the_analysts_form_is_condensed_to_what_the_programmer_needs() -> None:
    short = condense_for_programmer(filled(ANALYST), settings())
    titles = re.findall(r"^## (.*)$", short, re.MULTILINE)
    assert titles == ["Artifact review per file", "Downstream contract impact", "Explicit handoff"]


def test_the_programmers_form_is_condensed_to_what_the_tester_needs() -> None:
    short = condense_for_tester(filled(PROGRAMMER), settings())
    assert re.findall(r"^## (.*)$", short, re.MULTILINE) == ["Files changed", "Behaviour implemented"]


@pytest.mark.parametrize("name", shipped_names())
def test_a_profile_is_front_matter_and_instructions(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.description
    assert profile.text.startswith(f"---\nname: {name}\ndescription: ")
    assert ":" not in profile.description, "it is plain YAML without quotes"
    assert profile.instructions.startswith("# ")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_do_not_matter(end: str, mark: str) -> None:
    text = mark + end.join(["---", "name: x", 'description: "d"', "---", "", "do it"])
    profile = parse_profile(text, "x.md")
    assert (profile.name, profile.description, profile.instructions) == ("x", "d", "do it")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "do it",
        "---\nname: x\n",
        "---\ndescription: d\n---\n",
        "---\nname: ../x\n---\n",
        "---\nname: a b\n---\n",
        "---\nname: -t\n---\n",
        f"---\nname: {'x' * 65}\n---\n",
        "---\nname:\n---\n",
        "---\n name: x\n---\n",
    ],
)
def test_a_malformed_profile_is_named(text: str) -> None:
    with pytest.raises(ProfileError, match=r"^profile bad\.md: [^\n]*$"):
        parse_profile(text, "bad.md")


@pytest.mark.parametrize("name", ["nobody", "../tester", "tester.md", "x" * 10_000])
def test_only_shipped_profiles_are_loaded_by_name(name: str) -> None:
    with pytest.raises(ProfileError, match="shipped are"):
        load_profile(name)
