"""The agent CLIs that are driven by the Agent Client Protocol: one row for each, and the user's own as rows too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from quintet.providers.acp.host_settings import HostSettings, InstructionsBy, ModelBy, UsageRule
from quintet.providers.registration import ANY_AGENT, OpenSpecTool, Registration


@dataclass(frozen=True)
class Way:
    """How an agent is told what it may do without asking."""

    arguments: tuple[str, ...] = ()
    mode: str = ""
    """a session mode"""
    config: Mapping[str, Any] = field(default_factory=dict)
    """for an agent with a `config_variable`: what is added to its configuration"""


@dataclass(frozen=True)
class AcpAgent(Registration):
    """One agent that speaks the protocol. What a row leaves out is done as the protocol has it."""

    arguments: tuple[str, ...] = ()
    """with which its program speaks the protocol"""
    tested: tuple[str, str] = ("", "")
    """the oldest and the newest release that was tried; empty where none was"""
    env: Mapping[str, str] = field(default_factory=dict)
    """variables for this agent alone"""
    unattended: Way = Way()
    asking: Way = Way()
    """with `PERMISSIONS=ask`"""
    permission_options: tuple[str, ...] = ()
    """arguments by which a user says what the agent may do"""
    config_variable: str = ""
    """the variable with its configuration as JSON; what a user has in it is kept"""
    instructions_by: InstructionsBy = InstructionsBy.FIRST_PROMPT
    instructions_argument: str = ""
    """the argument that adds the role's text to its instructions"""
    instructions_key: str = ""
    """the list in its configuration that names files with instructions"""
    instructions_variable: str = ""
    """the variable with folders that it looks for instructions in, with commas between them"""
    model: str = ""
    """the model of roles that name none"""
    model_by: ModelBy = ModelBy.PROTOCOL
    model_argument: str = ""
    """the argument that chooses a model"""
    usage: UsageRule = UsageRule.TURN
    error_prefix: str = ""
    note_prefix: str = ""
    begins_at_prompt: bool = False
    load_in_next_minute: bool = False
    loads_once: bool = False
    """a conversation that was loaded before cannot be loaded again; the try would destroy it"""
    keys: tuple[str, ...] = ()
    """variables that stand for a login"""
    is_own: bool = False
    """whether the user has defined it"""

    @property
    def is_tried(self) -> bool:
        return bool(self.tested[1])


def _skills(tool: str, folder: str, commands: str) -> OpenSpecTool:
    return OpenSpecTool(tool, (f"{folder}/skills",), commands)


_MODELS: Final = (
    *("ANTHROPIC_*", "OPENAI_*", "AZURE_OPENAI_*", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    *("OPENROUTER_API_KEY", "GROQ_API_KEY", "XAI_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "MOONSHOT_API_KEY"),
    *("CEREBRAS_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY", "ZHIPU_API_KEY", "DASHSCOPE_API_KEY"),
)
"""variables of model providers, for agents that know many of them"""

GEMINI: Final = AcpAgent(
    "gemini_cli",
    program="gemini",
    install="npm install -g @google/gemini-cli",
    openspec=_skills("gemini", ".gemini", ".gemini/commands/opsx/{}.toml"),
    homes=("~/.gemini",),
    endpoints=(
        *("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com", "aiplatform.googleapis.com"),
        *("oauth2.googleapis.com", "accounts.google.com"),
    ),
    base_urls=("GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"),
    is_proxied=True,
    histories=("tmp", "history"),
    variables=("GEMINI_*", "GOOGLE_*"),
    arguments=("--acp",),
    tested=("0.61.0", "0.61.0"),
    # without trust it refuses the mode yolo
    unattended=Way(("--approval-mode", "yolo", "--skip-trust")),
    asking=Way(("--approval-mode", "default")),
    permission_options=("--approval-mode", "--yolo", "-y", "--allowed-tools", "--policy"),
    model_argument="-m",
    model_by=ModelBy.PROGRAM,
    usage=UsageRule.QUOTA,
    begins_at_prompt=True,
    load_in_next_minute=True,
    loads_once=True,
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
    login_files=("~/.gemini/oauth_creds.json",),
)
OPENCODE: Final = AcpAgent(
    "opencode_cli",
    program="opencode",
    install="npm install -g opencode-ai",
    openspec=_skills("opencode", ".opencode", ".opencode/commands/opsx-{}.md"),
    homes=("~/.config/opencode", "~/.local/share/opencode", "~/.local/state/opencode", "~/.cache/opencode"),
    endpoints=("opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com"),
    base_urls=("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"),
    is_proxied=True,
    histories=("storage", "log", "snapshot", "*.db*", "project", "bin", "tool-output", "worktree", "repos"),
    variables=("OPENCODE_*", *_MODELS),
    arguments=("acp",),
    tested=("1.18.33", "1.18.33"),
    unattended=Way(config={"permission": "allow", "autoupdate": False}),
    asking=Way(config={"permission": {"edit": "ask", "bash": "ask"}, "autoupdate": False}),
    config_variable="OPENCODE_CONFIG_CONTENT",
    instructions_by=InstructionsBy.PROGRAM,
    instructions_key="instructions",
    model_by=ModelBy.PROGRAM,
    usage=UsageRule.LAST_CALL,
    keys=("OPENCODE_CONFIG_CONTENT", "OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
    login_files=("~/.local/share/opencode/auth.json",),
)
COPILOT: Final = AcpAgent(
    "copilot_cli",
    program="copilot",
    install="npm install -g @github/copilot",
    openspec=_skills("github-copilot", ".github", ".github/prompts/opsx-{}.prompt.md"),
    homes=("~/.copilot", "~/.cache/copilot", "~/.cache/Microsoft"),
    home_variable="COPILOT_HOME",
    endpoints=("*.githubcopilot.com", "api.github.com", "github.com"),
    base_urls=("COPILOT_PROVIDER_BASE_URL",),
    is_proxied=True,
    histories=("logs", "session-state", "history-session-state", "pkg", "*.db*"),
    variables=("COPILOT_*",),
    shared_keys=("GH_TOKEN", "GITHUB_TOKEN"),
    arguments=("--acp", "--no-auto-update"),
    tested=("1.0.102", "1.0.102"),
    unattended=Way(("--allow-all",)),
    permission_options=("--allow-all", "--allow-all-tools", "--allow-tool", "--deny-tool", "--yolo"),
    instructions_by=InstructionsBy.PROGRAM,
    instructions_variable="COPILOT_CUSTOM_INSTRUCTIONS_DIRS",
    model_argument="--model",
    model_by=ModelBy.PROGRAM,
    usage=UsageRule.PROCESS,
    error_prefix="Error: ",
    note_prefix="Info: ",
    keys=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
)
QWEN: Final = AcpAgent(
    "qwen_code",
    program="qwen",
    install="npm install -g @qwen-code/qwen-code",
    openspec=_skills("qwen", ".qwen", ".qwen/commands/opsx-{}.md"),
    homes=("~/.qwen",),
    endpoints=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "portal.qwen.ai", "chat.qwen.ai"),
    base_urls=("OPENAI_BASE_URL",),
    is_proxied=True,
    histories=("tmp", "projects", "debug", "todos", "history", "usage_record.jsonl"),
    variables=("OPENAI_*", "DASHSCOPE_*", "QWEN_*"),
    arguments=("--acp",),
    tested=("0.24.4", "0.24.4"),
    unattended=Way(("--approval-mode", "yolo")),
    asking=Way(("--approval-mode", "default")),
    permission_options=("--approval-mode", "--yolo", "-y", "--allowed-tools"),
    instructions_by=InstructionsBy.PROGRAM,
    instructions_argument="--append-system-prompt",
    model_argument="-m",
    model_by=ModelBy.PROGRAM,
    usage=UsageRule.CHUNKS,
    keys=("OPENAI_API_KEY", "DASHSCOPE_API_KEY"),
    login_files=("~/.qwen/oauth_creds.json",),
)
_NOT_TRIED: Final = (
    AcpAgent(
        "kiro_cli",
        program="kiro-cli",
        install="curl -fsSL https://cli.kiro.dev/install | bash",
        openspec=_skills("kiro", ".kiro", ".kiro/prompts/opsx-{}.prompt.md"),
        homes=("~/.kiro", "~/.local/share/kiro-cli"),
        variables=("KIRO_*",),
        arguments=("acp",),
    ),
    AcpAgent(
        "kimi_cli",
        program="kimi",
        install="npm install -g @moonshot-ai/kimi-code",
        openspec=_skills("kimi", ".kimi-code", ".kimi-code/commands/opsx-{}.md"),
        homes=("~/.kimi-code", "~/.kimi"),
        variables=("KIMI_*", "MOONSHOT_*"),
        arguments=("acp",),
    ),
    AcpAgent(
        "cursor_cli",
        program="cursor-agent",
        install="curl https://cursor.com/install -fsS | bash",
        openspec=_skills("cursor", ".cursor", ".cursor/commands/opsx-{}.md"),
        homes=("~/.cursor", "~/.config/cursor"),
        variables=("CURSOR_*",),
        arguments=("acp",),
    ),
    AcpAgent(
        "auggie",
        program="auggie",
        install="npm install -g @augmentcode/auggie",
        openspec=_skills("auggie", ".augment", ".augment/commands/opsx-{}.md"),
        homes=("~/.augment",),
        variables=("AUGMENT_*",),
        arguments=("--acp",),
    ),
    AcpAgent(
        "cline",
        program="cline",
        install="npm install -g cline",
        openspec=_skills("cline", ".cline", ".clinerules/workflows/opsx-{}.md"),
        homes=("~/.cline",),
        variables=("CLINE_*", *_MODELS),
        arguments=("--acp",),
    ),
    AcpAgent(
        "goose",
        program="goose",
        install="brew install block-goose-cli",
        openspec=ANY_AGENT,
        homes=("~/.config/goose", "~/.local/share/goose", "~/.local/state/goose"),
        variables=("GOOSE_*", *_MODELS),
        arguments=("acp",),
    ),
)

ACP_AGENTS: Final = (GEMINI, OPENCODE, COPILOT, QWEN, *_NOT_TRIED)
"""by the protocol, those that were tried first"""


def own_agent(
    name: str,
    *,
    command: Sequence[str],
    env: Mapping[str, str],
    mode: str = "",
    model: str = "",
    instructions: str = "",
    install: str = "",
) -> AcpAgent:
    """An agent that the user has defined."""
    return AcpAgent(
        name,
        program=command[0],
        install=install,
        openspec=ANY_AGENT,
        arguments=tuple(command[1:]),
        env=env,
        unattended=Way(mode=mode),
        instructions_by=InstructionsBy(instructions or InstructionsBy.FIRST_PROMPT),
        model=model,
        is_own=True,
    )


def started_agent(folder: Path) -> AcpAgent | None:
    """The agent of a terminal that another server has started, by what its host was told; None where it has no host."""
    try:
        settings = HostSettings.read(folder)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return own_agent(settings.name, command=settings.command or (settings.name,), env={})
