"""The one table of settings: each with its variable, its place in the JSON file, its default and its meaning."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from quintet.config.kinds import (
    Choice,
    Choices,
    Counts,
    DatabaseUrl,
    Domains,
    Flag,
    Globs,
    Kind,
    Money,
    Paths,
    PathText,
    Prices,
    Seconds,
    Text,
    TextList,
    Url,
    VariableNames,
    Variables,
    WholeNumber,
    Words,
)
from quintet.layout import Workspace
from quintet.providers.registry import command_providers, endpoints_of, provider_names
from quintet.roles import ANALYST, ROLES

WORKTREE: Final = "worktree"
OWN_PROVIDERS: Final = provider_names()
CAO_PROVIDERS: Final = (
    "antigravity_cli",
    "grok_cli",
    "hermes",
    "mcode",
    "mock_cli",
    "omp",
    "q_cli",
)
"""what another server may offer in addition: the names of CAO 2.5.4 and of its older releases"""


@dataclass(frozen=True)
class Row:
    """One setting: its name, its key in the config file, its kind and its meaning."""

    name: str
    key: str
    kind: Kind
    meaning: str
    word: str = ""
    """what users call it, where that is not its name"""

    @property
    def env(self) -> str:
        return (self.word or self.name).upper()

    @property
    def flag(self) -> str:
        return "--" + (self.word or self.name).replace("_", "-")


def _row(key: str, kind: Kind, default: Any, meaning: str, word: str = "") -> Any:
    return field(default=default, metadata={"key": key, "kind": kind, "meaning": meaning, "word": word})


@dataclass(frozen=True)
class Agent:
    """How one agent is started."""

    provider: str
    profile: str
    model: str = ""
    args: tuple[str, ...] = ()

    @property
    def has_commands(self) -> bool:
        """Whether it knows OpenSpec's workflows as commands."""
        return self.provider in command_providers()


AGENT_KINDS: Final[Mapping[str, Kind]] = {
    "provider": Choice(OWN_PROVIDERS),
    "profile": Text("a profile's name", may_be_empty=False),
    "model": Text("a model's name"),
    "args": TextList(),
}


@dataclass(frozen=True)
class OwnProvider:
    """An agent CLI that the user has defined: it speaks the Agent Client Protocol."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """variables that only this agent gets; their values may be secret"""
    mode: str = ""
    model: str = ""
    instructions: str = ""
    install: str = ""


PROVIDER_KINDS: Final[Mapping[str, Kind]] = {
    "command": Words(),
    "env": Variables(),
    "mode": Text("a mode's name"),
    "model": Text("a model's name"),
    "instructions": Choice(("first prompt", "system prompt")),
    "install": Text("a shell line"),
}


def _default_agents() -> dict[str, Agent]:
    return {role.name: Agent(OWN_PROVIDERS[0], role.profile) for role in ROLES}


@dataclass(frozen=True)
class Settings:
    """The effective settings of a run. Every field but `agents`, `providers` and `chosen` is a row of the table."""

    api: str = _row("api", Url(), "", "terminal server to use; by default the run starts its own")
    provider: str = _row(
        "provider",
        Choice(OWN_PROVIDERS),
        OWN_PROVIDERS[0],
        "the agent CLI of every role for which `agents` names no other",
    )
    wd: Path = _row("wd", PathText("an existing folder"), Path(), "the project that the agents work in")
    prompt: str = _row("prompt", Text(), "", "the task itself, in the form of a task file")
    prompt_file: str = _row("prompt_file", PathText(may_be_empty=True), "", "the task file")
    prompts_dir: str = _row(
        "prompts_dir",
        PathText("a folder", may_be_empty=True),
        "",
        "a folder with prompt texts of your own, which replace the shipped ones of the same name",
    )
    project_test_cmd: str = _row(
        "project_test_cmd", Text(), "", "the command that runs the project's tests, for the programmer and its reviewer"
    )
    verify_cmd: str = _row(
        "verify_cmd",
        Text(),
        "",
        "a command that Quintet runs after a PASS and the task's `verify` blocks; only exit code 0 confirms the PASS",
    )
    start_agent: str = _row(
        "start_agent",
        Choice(tuple(role.name for role in ROLES)),
        ANALYST.name,
        "who gets the first prompt of a new run",
    )
    max_rounds: int = _row("limits.max_rounds", WholeNumber(1), 8, "tests before the run ends as FAIL")
    max_review_cycles: int = _row(
        "limits.max_review_cycles", WholeNumber(1), 3, "reviews of a phase before the run continues without an approval"
    )
    min_review_cycles_before_approval: int = _row(
        "limits.min_review_cycles_before_approval", WholeNumber(0), 2, "the first review that may approve"
    )
    max_tokens: int = _row(
        "limits.max_tokens",
        WholeNumber(0, 10**12),
        0,
        "tokens after which the run stops before its next prompt; 0: no limit",
    )
    max_seconds: float = _row(
        "limits.max_seconds",
        Seconds(),
        0.0,
        "time that agents may be at work before the run stops before its next prompt; 0: no limit",
    )
    max_cost: float = _row(
        "limits.max_cost",
        Money(),
        0.0,
        "what the tokens may cost, by `prices`, before the run stops before its next prompt; 0: no limit",
    )
    max_limit_wait: float = _row(
        "limits.max_limit_wait",
        Seconds(),
        21600.0,
        "longest wait in a step for the end of an agent's usage limit; 0: do not wait",
    )
    poll_seconds: float = _row("limits.poll_seconds", Seconds(), 2.0, "time between two checks of an agent's status")
    require_review_evidence: bool = _row(
        "limits.require_review_evidence", Flag(), True, "an approval counts only with evidence"
    )
    review_evidence_min_match: int = _row(
        "limits.review_evidence_min_match",
        WholeNumber(0, 4),
        3,
        "how many of the four kinds of evidence an approval needs",
    )
    guard: str = _row(
        "guard.mode",
        Choice(("restore", "report", "off")),
        "restore",
        "what follows when a role changes what it may not change: it is undone, only reported, or nobody looks",
    )
    protect: tuple[str, ...] = _row("guard.protect", Globs(), (), "files that no role may change, as paths or globs")
    guard_allow: tuple[str, ...] = _row(
        "guard.allow", Globs(), (), "files that every role may change, as paths or globs"
    )
    require_actions: bool = _row(
        "guard.require_actions",
        Flag(),
        True,
        "an approval counts only after something was read or run, a PASS only after a command, by the agents' records",
    )
    end_strays: bool = _row(
        "guard.end_strays",
        Flag(),
        True,
        "end what a turn has left running, before its changes are looked at and before a reviewer or tester is asked",
    )
    red_first: str = _row(
        "guard.red_first",
        Choice(("warn", "stop", "off")),
        "warn",
        "what to do about a check that succeeds before anything is done: the task's `verify` blocks, else `VERIFY_CMD`",
    )
    verify_first: bool = _row(
        "guard.verify_first",
        Flag(),
        False,
        "run the checks before the tester is asked too; where one fails, the round has failed",
    )
    condense_cross_phase: bool = _row(
        "condensation.condense_cross_phase", Flag(), True, "shorten what goes to the next phase"
    )
    max_cross_phase_lines: int = _row(
        "condensation.max_cross_phase_lines",
        WholeNumber(1),
        40,
        "lines of a reply that is shortened for the next phase",
    )
    condense_upstream_on_repeat: bool = _row(
        "condensation.condense_upstream_on_repeat",
        Flag(),
        True,
        "the programmer gets the analyst's handoff once, then a reference to it",
    )
    condense_explore_on_repeat: bool = _row(
        "condensation.condense_explore_on_repeat",
        Flag(),
        True,
        "a terminal gets the explore summary once, then a reference to it",
    )
    condense_review_feedback: bool = _row(
        "condensation.condense_review_feedback", Flag(), True, "shorten a review for the agent that was reviewed"
    )
    max_feedback_lines: int = _row("condensation.max_feedback_lines", WholeNumber(1), 30, "lines of a shortened review")
    max_test_evidence_lines: int = _row(
        "condensation.max_test_evidence_lines", WholeNumber(1), 120, "lines of a failed test's evidence"
    )
    strict_file_handoff: bool = _row(
        "handoff.strict_file_handoff",
        Flag(),
        True,
        "a reply counts only as a file; off: the last answer on the screen counts too",
    )
    idle_grace_seconds: float = _row(
        "handoff.idle_grace_seconds", Seconds(), 30.0, "how long an agent may be idle without a response file"
    )
    response_timeout: float = _row("handoff.response_timeout", Seconds(0.01), 1800.0, "longest wait for one reply")
    max_file_reminders: int = _row(
        "handoff.max_file_reminders", WholeNumber(0), 1, "reminders to an idle agent that wrote no file"
    )
    permissions: str = _row(
        "handoff.permissions",
        Choice(("unattended", "ask")),
        "unattended",
        "whether the agents ask before they act; their own settings say for what",
    )
    auto_accept_permissions: bool = _row(
        "handoff.auto_accept_permissions", Flag(), False, "answer yes when an agent asks for permission"
    )
    recover_terminals: bool = _row(
        "handoff.recover_terminals",
        Flag(),
        True,
        "start a lost terminal again, at most twice a step; only with Quintet's own server",
    )
    post_openspec_archive: bool = _row(
        "post_processing.openspec_archive", Flag(), False, "after PASS archive the OpenSpec change"
    )
    post_git_commit: bool = _row("post_processing.git_commit", Flag(), False, "after PASS commit the work tree")
    post_git_commit_comment: str = _row("post_processing.git_commit_comment", Text(), "", "that commit's message")
    post_push: str = _row(
        "post_processing.push",
        Text("a remote, or a remote and a branch"),
        "",
        "after PASS push the commit to this remote, and there to another branch where one is named; never by force",
    )
    post_pr: str = _row(
        "post_processing.pull_request",
        Choice(("off", "draft", "ready")),
        "off",
        "after PASS open a pull request for what was pushed, with gh or glab",
    )
    workspace_mode: str = _row(
        "workspace.mode",
        Choice(("tree", WORKTREE)),
        "tree",
        "where the agents work: in the project itself, or in a git worktree on a branch of the run's own",
        word="workspace",
    )
    workspace_base: str = _row(
        "workspace.base", Text("a commit or branch"), "", "the commit that a new worktree begins at; by default HEAD"
    )
    workspace_branch: str = _row(
        "workspace.branch",
        Text("a branch's name; {slug} stands for the task", may_be_empty=False),
        "quintet/{slug}",
        "the name of a worktree's branch; a number is added where it exists",
    )
    workspace_dir: str = _row(
        "workspace.dir",
        PathText("a folder outside the repository", may_be_empty=True),
        "",
        "the folder that worktrees are made in; by default in the user's state directory",
    )
    workspace_include: tuple[str, ...] = _row(
        "workspace.include",
        Globs(),
        (),
        "files that git does not track and a worktree needs, such as `.env`; they are copied into it",
    )
    workspace_setup: str = _row(
        "workspace.setup", Text(), "", "a command that is run in a new worktree before the first prompt, as `npm ci`"
    )
    workspace_with_changes: bool = _row(
        "workspace.with_changes",
        Flag(),
        False,
        "take the changes that are not committed along, as the first commit of the worktree's branch",
        word="with_changes",
    )
    sandbox: str = _row(
        "sandbox.mode",
        Choice(("off", "on")),
        "off",
        "on: agents see their work tree, programs and a home of their own, and write to nothing else; needs bubblewrap",
    )
    sandbox_write: tuple[str, ...] = _row(
        "sandbox.write", Paths(), (), "what agents in the sandbox may write to beside their work tree"
    )
    sandbox_hide: tuple[str, ...] = _row("sandbox.hide", Paths(), (), "what they cannot see of what the sandbox shows")
    sandbox_show: tuple[str, ...] = _row(
        "sandbox.show", Paths(), (), "what they can read beside their work tree and programs, for instance in your home"
    )
    sandbox_env: tuple[str, ...] = _row(
        "sandbox.env",
        VariableNames(),
        (),
        "variables that agents in the sandbox get beside locale, proxies and their models' keys, as `BUILD_*`",
    )
    sandbox_network: str = _row(
        "sandbox.network",
        Choice(("keep", "allow", "none")),
        "keep",
        "what the sandbox leaves of the network: all, only the hosts in `sandbox.domains`, or nothing (only for agents "
        "without a model)",
    )
    sandbox_domains: tuple[str, ...] = _row(
        "sandbox.domains",
        Domains(),
        (),
        "with `sandbox.network: allow`, the hosts that agents can reach; by default those of each agent's model",
    )
    sandbox_check_domains: tuple[str, ...] = _row(
        "sandbox.check_domains",
        Domains(),
        (),
        "the same for checks and `workspace.setup`, for instance a package registry; by default none",
    )
    approve: tuple[str, ...] = _row(
        "people.approve",
        Choices(("spec", "result")),
        (),
        "where the run waits for a person: after the specification, after PASS, or both",
    )
    approve_timeout: float = _row(
        "people.approve_timeout", Seconds(), 0.0, "how long it waits there for a word; 0: for ever"
    )
    approve_default: str = _row(
        "people.approve_default",
        Choice(("stop", "approve", "reject")),
        "stop",
        "what follows when that time is up: the run stops and waits on, or goes on as if somebody had said so",
    )
    queue_url: str = _row(
        "queue.url",
        DatabaseUrl(),
        "",
        "the database of the task queue: a PostgreSQL server for many machines; by default a file of the user's",
        word="queue",
    )
    queue_lease: float = _row(
        "queue.lease",
        Seconds(3.0, 86_400.0),
        120.0,
        "how long a worker may be silent before another one continues its task",
    )
    queue_accounts: Mapping[str, int] | None = _row(
        "queue.accounts", Counts(), None, "how many tasks may run at once for an account, over all machines"
    )
    queue_checkpoints: bool = _row(
        "queue.checkpoints",
        Flag(),
        True,
        "push the work and the records of a task to its remote after every turn; off: a takeover begins it anew",
    )
    queue_push_failed: bool = _row(
        "queue.push_failed", Flag(), False, "push the branch of a task that has failed too, as quintet/failed/NAME"
    )
    queue_max_tokens: int = _row(
        "queue.max_tokens",
        WholeNumber(0, 10**12),
        0,
        "tokens of all tasks of a day (UTC) after which a worker takes no more of them; 0: no limit",
    )
    queue_max_cost: float = _row(
        "queue.max_cost", Money(), 0.0, "the same as an amount of money, by `prices`; 0: no limit"
    )
    ntfy_topic: str = _row("notifications.ntfy_topic", Text(), "", "ntfy topic that gets notifications")
    ntfy_url: str = _row("notifications.ntfy_url", Url(), "https://ntfy.sh", "ntfy server, by default the public one")
    notify_webhook: str = _row(
        "notifications.webhook", Url(), "", "address that gets each notification as JSON, in a POST request"
    )
    notify_secret_file: str = _row(
        "notifications.secret_file",
        PathText(may_be_empty=True),
        "",
        "a file with the secret that signs what goes to the webhook, in the header `X-Quintet-Signature`",
    )
    notify_link: str = _row(
        "notifications.link", Url(), "", "the address of your dashboard: each notification gets a link to its run there"
    )
    notify_cmd: str = _row(
        "notifications.command", Text(), "", "a command that gets each notification as JSON on its standard input"
    )
    progress_seconds: float = _row(
        "progress_seconds",
        Seconds(),
        60.0,
        "with `--plain`: time without output after which a line says who is working; 0: never",
    )
    prices: Mapping[str, Mapping[str, float]] | None = _row(
        "prices", Prices(), None, "what a million tokens cost, by model or provider; without it no costs are shown"
    )
    cleanup_on_exit: bool = _row("cleanup_on_exit", Flag(), False, "end the terminals with the run")
    resume: bool | None = _row(
        "resume", Flag(), None, "true: resume or fail; false: always a new run; unset: resume an unfinished run"
    )
    state_file: Path = _row("state_file", PathText(), Path(), "where the state of the run is saved")
    agents: Mapping[str, Agent] = field(default_factory=_default_agents)
    providers: Mapping[str, OwnProvider] = field(default_factory=dict)
    """the agent CLIs that the user has defined, by name"""
    chosen: Workspace | None = None
    """the workspace that was chosen or made for the run"""

    @property
    def workspace(self) -> Workspace:
        """Where the run belongs and where its agents work."""
        return self.chosen or Workspace(self.wd, self.wd)

    @property
    def own_agents(self) -> list[str]:
        """The agents in use that the user has defined."""
        return sorted({agent.provider for agent in self.agents.values()} & self.providers.keys())

    @property
    def is_sandboxed(self) -> bool:
        return self.sandbox == "on"

    def domains_of(self, provider: str, env: Mapping[str, str]) -> tuple[str, ...]:
        """The hosts that an agent can reach with `sandbox.network: allow`."""
        own = self.providers.get(provider)
        return self.sandbox_domains or endpoints_of(provider, {**env, **(own.env if own else {})})

    def line_to_allow(self, entry: str, env: Mapping[str, str], *, for_checks: bool = False) -> str:
        """The setting that allows one more host to all agents, or to the checks."""
        if for_checks:
            return f"SANDBOX_CHECK_DOMAINS={','.join((*self.sandbox_check_domains, entry))}"
        known = [host for agent in self.agents.values() for host in self.domains_of(agent.provider, env)]
        return f"SANDBOX_DOMAINS={','.join(dict.fromkeys((*known, entry)))}"

    @property
    def commits(self) -> bool:
        """Whether the work is committed after a PASS: that of a worktree always is."""
        return bool(self.post_git_commit or self.workspace.is_worktree or self.needs_worktree or self.push_to)

    @property
    def push_to(self) -> str:
        """Where the commit is pushed to after a PASS; a pull request needs that, too."""
        return self.post_push.strip() or ("origin" if self.post_pr != "off" else "")

    @property
    def needs_worktree(self) -> bool:
        """Whether the run works in a worktree that is still to be made."""
        return self.chosen is None and self.workspace_mode == WORKTREE


def _as_row(item: Field[Any]) -> Row:
    return Row(name=item.name, **item.metadata)


TABLE: Final = tuple(_as_row(item) for item in fields(Settings) if item.metadata)
AGENTS_KEY: Final = "agents"
PROVIDERS_KEY: Final = "providers"
