"""The one table of settings: each with its variable, its place in the JSON file, its default and its meaning."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from quintet.config.kinds import Choice, Flag, Kind, PathText, Prices, Seconds, Text, Url, Whole, Words
from quintet.providers.registry import provider_names
from quintet.roles import ANALYST, ROLES

OWN_PROVIDERS: Final = provider_names()
CAO_PROVIDERS: Final = (
    "antigravity_cli",
    "copilot_cli",
    "cursor_cli",
    "gemini_cli",
    "grok_cli",
    "hermes",
    "kimi_cli",
    "kiro_cli",
    "mcode",
    "mock_cli",
    "omp",
    "opencode_cli",
    "q_cli",
)
"""what another server may offer beside ours: CAO 2.5.4's names and those of its older releases"""


@dataclass(frozen=True)
class Row:
    """What the table says of one setting."""

    name: str
    env: str
    key: str
    kind: Kind
    meaning: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def _row(env: str, key: str, kind: Kind, default: Any, meaning: str) -> Any:
    return field(default=default, metadata={"env": env, "key": key, "kind": kind, "meaning": meaning})


@dataclass(frozen=True)
class Agent:
    """How one agent is started."""

    provider: str
    profile: str
    model: str = ""
    args: tuple[str, ...] = ()


AGENT_KINDS: Final[Mapping[str, Kind]] = {
    "provider": Choice(OWN_PROVIDERS),
    "profile": Text("a profile's name", may_be_empty=False),
    "model": Text("a model's name"),
    "args": Words(),
}


def _default_agents() -> dict[str, Agent]:
    return {role.name: Agent(OWN_PROVIDERS[0], role.profile) for role in ROLES}


@dataclass(frozen=True)
class Settings:
    """The effective settings of a run. Every field but `agents` is a row of the table."""

    api: str = _row("API", "api", Url(), "", "terminal server to use; without it the run brings its own")
    provider: str = _row(
        "PROVIDER", "provider", Choice(OWN_PROVIDERS), OWN_PROVIDERS[0], "agent CLI of every role that names no other"
    )
    wd: Path = _row("WD", "wd", PathText("an existing folder"), Path(), "the project that the agents work in")
    prompt: str = _row("PROMPT", "prompt", Text(), "", "the task itself, in the form of a task file")
    prompt_file: str = _row("PROMPT_FILE", "prompt_file", PathText(may_be_empty=True), "", "the task file")
    prompts_dir: str = _row(
        "PROMPTS_DIR",
        "prompts_dir",
        PathText("a folder", may_be_empty=True),
        "",
        "a folder with prompt texts of your own, which replace the shipped ones of the same name",
    )
    project_test_cmd: str = _row(
        "PROJECT_TEST_CMD",
        "project_test_cmd",
        Text(),
        "",
        "how the project's tests are run; the programmer and its reviewer are told",
    )
    verify_cmd: str = _row(
        "VERIFY_CMD",
        "verify_cmd",
        Text(),
        "",
        "run by Quintet itself after a PASS, which only exit code 0 confirms",
    )
    start_agent: str = _row(
        "START_AGENT",
        "start_agent",
        Choice(tuple(role.name for role in ROLES)),
        ANALYST.name,
        "who gets the first prompt of a new run",
    )
    max_rounds: int = _row("MAX_ROUNDS", "limits.max_rounds", Whole(1), 8, "tests before the run ends as FAIL")
    max_review_cycles: int = _row(
        "MAX_REVIEW_CYCLES",
        "limits.max_review_cycles",
        Whole(1),
        3,
        "reviews of a phase before it goes on regardless",
    )
    min_review_cycles_before_approval: int = _row(
        "MIN_REVIEW_CYCLES_BEFORE_APPROVAL",
        "limits.min_review_cycles_before_approval",
        Whole(0),
        2,
        "the first review that may approve",
    )
    max_tokens: int = _row(
        "MAX_TOKENS",
        "limits.max_tokens",
        Whole(0, 10**12),
        0,
        "tokens after which the run stops before its next prompt; 0: no limit",
    )
    max_limit_wait: float = _row(
        "MAX_LIMIT_WAIT",
        "limits.max_limit_wait",
        Seconds(),
        21600.0,
        "longest wait, in a step, for the end of an agent's usage limit; 0: none",
    )
    poll_seconds: float = _row(
        "POLL_SECONDS",
        "limits.poll_seconds",
        Seconds(),
        2.0,
        "time between two looks at an agent's status",
    )
    require_review_evidence: bool = _row(
        "REQUIRE_REVIEW_EVIDENCE",
        "limits.require_review_evidence",
        Flag(),
        True,
        "an approval counts only with evidence",
    )
    review_evidence_min_match: int = _row(
        "REVIEW_EVIDENCE_MIN_MATCH",
        "limits.review_evidence_min_match",
        Whole(0, 4),
        3,
        "how many of the four kinds of evidence an approval needs",
    )
    condense_cross_phase: bool = _row(
        "CONDENSE_CROSS_PHASE",
        "condensation.condense_cross_phase",
        Flag(),
        True,
        "shorten what goes to the next phase",
    )
    max_cross_phase_lines: int = _row(
        "MAX_CROSS_PHASE_LINES",
        "condensation.max_cross_phase_lines",
        Whole(1),
        40,
        "lines of what is shortened so",
    )
    condense_upstream_on_repeat: bool = _row(
        "CONDENSE_UPSTREAM_ON_REPEAT",
        "condensation.condense_upstream_on_repeat",
        Flag(),
        True,
        "the programmer gets the analyst's handoff once, then a reference to it",
    )
    condense_explore_on_repeat: bool = _row(
        "CONDENSE_EXPLORE_ON_REPEAT",
        "condensation.condense_explore_on_repeat",
        Flag(),
        True,
        "a terminal gets the explore summary once, then a reference to it",
    )
    condense_review_feedback: bool = _row(
        "CONDENSE_REVIEW_FEEDBACK",
        "condensation.condense_review_feedback",
        Flag(),
        True,
        "shorten reviews for the reviewed",
    )
    max_feedback_lines: int = _row(
        "MAX_FEEDBACK_LINES", "condensation.max_feedback_lines", Whole(1), 30, "lines of a shortened review"
    )
    max_test_evidence_lines: int = _row(
        "MAX_TEST_EVIDENCE_LINES",
        "condensation.max_test_evidence_lines",
        Whole(1),
        120,
        "lines of a failed test's evidence",
    )
    strict_file_handoff: bool = _row(
        "STRICT_FILE_HANDOFF",
        "handoff.strict_file_handoff",
        Flag(),
        True,
        "a reply counts only as a file; off: the screen's last answer will do",
    )
    idle_grace_seconds: float = _row(
        "IDLE_GRACE_SECONDS",
        "handoff.idle_grace_seconds",
        Seconds(),
        30.0,
        "idle without a file for so long: no reply",
    )
    response_timeout: float = _row(
        "RESPONSE_TIMEOUT", "handoff.response_timeout", Seconds(0.01), 1800.0, "longest wait for one reply"
    )
    max_file_reminders: int = _row(
        "MAX_FILE_REMINDERS",
        "handoff.max_file_reminders",
        Whole(0),
        1,
        "reminders to an idle agent that wrote no file",
    )
    permissions: str = _row(
        "PERMISSIONS",
        "handoff.permissions",
        Choice(("unattended", "ask")),
        "unattended",
        "whether the agents ask before they act, as far as their own settings say so",
    )
    auto_accept_permissions: bool = _row(
        "AUTO_ACCEPT_PERMISSIONS",
        "handoff.auto_accept_permissions",
        Flag(),
        False,
        "say yes when an agent asks permission",
    )
    recover_terminals: bool = _row(
        "RECOVER_TERMINALS",
        "handoff.recover_terminals",
        Flag(),
        True,
        "start a lost terminal again, at most twice a step; only where the server is Quintet's own",
    )
    post_openspec_archive: bool = _row(
        "POST_OPENSPEC_ARCHIVE",
        "post_processing.openspec_archive",
        Flag(),
        False,
        "after PASS archive the OpenSpec change",
    )
    post_git_commit: bool = _row(
        "POST_GIT_COMMIT", "post_processing.git_commit", Flag(), False, "after PASS commit the work tree"
    )
    post_git_commit_comment: str = _row(
        "POST_GIT_COMMIT_COMMENT", "post_processing.git_commit_comment", Text(), "", "that commit's message"
    )
    ntfy_topic: str = _row("NTFY_TOPIC", "notifications.ntfy_topic", Text(), "", "ntfy topic that gets notifications")
    ntfy_url: str = _row(
        "NTFY_URL",
        "notifications.ntfy_url",
        Url(),
        "https://ntfy.sh",
        "ntfy server, by default the public one",
    )
    progress_seconds: float = _row(
        "PROGRESS_SECONDS",
        "progress_seconds",
        Seconds(),
        60.0,
        "time after which `--plain` says who is at work when nothing else was said; 0: never",
    )
    prices: Mapping[str, Mapping[str, float]] | None = _row(
        "PRICES",
        "prices",
        Prices(),
        None,
        "what a million tokens cost, by model or provider; without it no costs are shown",
    )
    cleanup_on_exit: bool = _row("CLEANUP_ON_EXIT", "cleanup_on_exit", Flag(), False, "end the terminals with the run")
    resume: bool | None = _row(
        "RESUME",
        "resume",
        Flag(),
        None,
        "true: resume or fail; false: always a new run; unset: resume what is unfinished",
    )
    state_file: Path = _row(
        "STATE_FILE",
        "state_file",
        PathText(),
        Path(),
        "the state file",
    )
    agents: Mapping[str, Agent] = field(default_factory=_default_agents)


def _as_row(item: Field[Any]) -> Row:
    return Row(name=item.name, **item.metadata)


TABLE: Final = tuple(_as_row(item) for item in fields(Settings) if item.metadata)
AGENTS_KEY: Final = "agents"
