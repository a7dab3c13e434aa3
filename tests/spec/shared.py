"""Scenarios that stand in two documents."""

import json
from pathlib import Path
from typing import Any

from quintet.config import load_settings
from quintet.loop.decide.prompts import BACK_REFERENCE
from quintet.loop.record.state_file import load_state
from quintet.roles import PROGRAMMER, Phase
from tests.loop.runs import new_state, play, scripted, settings

HANDOFF = "## Explicit handoff\nbegin with a.py"


def defaults(tmp_path: Path) -> None:
    config = load_settings(None, {}, {}, tmp_path).settings
    assert config.max_rounds == 8
    assert config.max_review_cycles == 3
    assert config.poll_seconds == 2
    assert config.min_review_cycles_before_approval == 2
    assert config.review_evidence_min_match == 3


def repeated_handoff() -> None:
    for condense in (True, False):
        config = settings(condense_upstream_on_repeat=condense)
        played = play(new_state(config), config, scripted(analyst=HANDOFF))
        first, second = played.prompt_of(PROGRAMMER.name, 0), played.prompt_of(PROGRAMMER.name, 1)
        assert HANDOFF in first
        assert (HANDOFF in second) is not condense
        assert (f"System analyst handoff:\n{BACK_REFERENCE}" in second) is condense


def invalid_round(raw: Any, tmp_path: Path) -> None:
    loaded = _loaded({"current_round": raw, "feedback": "kept"}, tmp_path)
    assert (loaded.current_round, loaded.feedback) == (1, "kept")


def invalid_phase(raw: Any, tmp_path: Path) -> None:
    loaded = _loaded({"current_phase": raw, "feedback": "kept"}, tmp_path)
    assert (loaded.current_phase, loaded.feedback) == (Phase.ANALYST, "kept")


def _loaded(document: dict[str, Any], tmp_path: Path) -> Any:
    path = tmp_path / "state.json"
    path.write_text(json.dumps(document))
    return load_state(path)
