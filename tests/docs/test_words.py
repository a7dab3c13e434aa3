"""Messages, variables and releases that the pages name are those of the code."""

import re
from functools import cache
from pathlib import Path

import pytest

from quintet.config import TABLE
from quintet.providers.acp.agents import ACP_AGENTS
from quintet.providers.registry import find_provider, provider_names
from tests.docs.pages import DOCS, ROOT, pages

SOURCE = ROOT / "src" / "quintet"
SYMPTOMS = re.findall(r"^\*\*(.+?)\*\*", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE)
MESSAGES = [message for symptom in SYMPTOMS for message in re.findall(r"`([^`]+)`", symptom)]
VARIABLE = re.compile(r"\.\.\.|[\d.]*\d")
"""what differs from one message to the next"""


@cache
def shipped() -> str:
    """All that is shipped, texts too; a message that goes on in the next line is put together."""
    texts = (path.read_text(encoding="utf-8") for kind in ("py", "md", "js") for path in SOURCE.rglob(f"*.{kind}"))
    return re.sub(r"\"\n\s+f?\"", "", "\n".join(texts))


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 25


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_that_quintet_gives(message: str) -> None:
    parts = [part.strip() for part in VARIABLE.split(message)]
    assert any(len(part) > 5 for part in parts), "too short to be found"
    assert not [part for part in parts if part not in shipped()]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_variable_and_word_in_capitals_is_known(page: Path) -> None:
    spans = re.findall(r"`([A-Z][A-Z_]{2,})(?:[=: ][^`]*)?`", page.read_text(encoding="utf-8"))
    variables = {row.env for row in TABLE}
    assert not [name for name in spans if name not in variables and not re.search(rf"\b{name}\b", shipped())]


def test_the_page_of_providers_names_the_releases_that_were_tested() -> None:
    page = (DOCS / "providers.md").read_text(encoding="utf-8")
    found = [
        provider for name in provider_names() if (provider := find_provider(name)) and provider.registration.program
    ]
    by_screen = [f"{oldest} to {newest}" for oldest, newest in (one.tested for one in found if not one.doorbell)]
    assert f"| {' | '.join(by_screen)} |" in page
    for agent in ACP_AGENTS:
        releases = " to ".join(sorted(set(agent.tested))) if agent.is_tried else "not tried"
        (row,) = (line for line in page.splitlines() if line.startswith(f"| `{agent.name}` |"))
        assert f"| `{agent.program} {agent.arguments[0]}` | {releases} |" in row
