"""What an agent in the sandbox can reach of its user's home and environment, and what it can leave there."""

import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.providers.registration import Registration
from quintet.providers.scripted.provider import PROVIDER
from tests.attacks.scene import attack
from tests.eventually import eventually
from tests.sandbox.boxed import Boxed, boxed_terminals

SECRET = "TOP-SECRET"
WITH_SECRETS = (
    *(".npmrc", ".config/glab-cli/config.yml", ".m2/settings.xml", ".config/pip/pip.conf", ".pip/pip.conf"),
    *(".bash_history", ".zsh_history", ".config/rclone/rclone.conf", ".cache/huggingface/token"),
    *(".huggingface/token", ".netrc", ".pgpass", ".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml"),
    *(".config/hub", ".docker/config.json", ".kube/config", ".gnupg/secring.gpg", ".git-credentials", ".gitconfig"),
    *(".config/git/config", ".cargo/credentials.toml", ".gem/credentials", ".pypirc"),
    *(".terraform.d/credentials.tfrc.json", ".vault-token", ".config/quintet/worker.env", ".claude.json"),
    *(".claude/.credentials.json", ".gemini/oauth_creds.json", ".local/share/keyrings/login"),
    *(".local/share/opencode/auth.json", ".mozilla/firefox/a/logins.json", ".config/op/config", ".yarnrc.yml"),
    *(".gradle/gradle.properties", ".nuget/NuGet/NuGet.Config", ".config/sops/age/keys.txt"),
    *(".local/state/quintet/token", ".env", "notes/password.txt"),
)


@pytest.fixture
def boxed() -> Iterator[Boxed]:
    with boxed_terminals() as made:
        yield made


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_nothing_in_the_home_can_be_read(boxed: Boxed) -> None:
    """Findings 10 and 16: a list of files that hold secrets, and any other."""
    for name in WITH_SECRETS:
        put(boxed.home / name, f'"token": "{SECRET}"')
    (said,) = boxed.run(f"grep -rl {SECRET} ~ {boxed.home}; ls -A ~/.ssh ~/.config/quintet; true")
    assert SECRET not in said
    assert not [name for name in WITH_SECRETS if f"{boxed.home}/{name}" in said], said


@pytest.mark.attacks
@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "KUBECONFIG", "GNUPGHOME"])
def test_what_variables_name_outside_of_the_home_is_hidden_too(
    boxed: Boxed, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Findings 10 and 16: the user keeps settings elsewhere."""
    elsewhere = Path("/var/lib") / f"quintet-test-{os.getpid()}"
    if os.getuid():
        pytest.skip("needs a folder outside of the home and of /tmp")
    try:
        put(elsewhere / "quintet" / "worker.env", SECRET)
        monkeypatch.setenv(variable, str(elsewhere))
        (said,) = boxed.run(f"grep -r {SECRET} {elsewhere}; true")
        assert SECRET not in said
    finally:
        (elsewhere / "quintet" / "worker.env").unlink()
        (elsewhere / "quintet").rmdir()
        elsewhere.rmdir()


def test_the_environment_is_an_allow_list(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings 10 and 28: keys of the user and of Quintet in the environment; honest variables arrive."""
    secret = ("AWS_SECRET_ACCESS_KEY", "GH_TOKEN", "QUEUE", "MY_OWN_PASSWORD", "OPENAI_API_KEY", "PGPASSWORD")
    honest = {"LANG": "C.UTF-8", "https_proxy": "http://proxy:3128", "NO_PROXY": "localhost", "TZ": "UTC"}
    for name in secret:
        monkeypatch.setenv(name, SECRET)
    for name, value in {**honest, "BUILD_NUMBER": "7"}.items():
        monkeypatch.setenv(name, value)
    (said,) = boxed.run("env; cat /proc/*/environ | tr '\\0' '\\n'", env=["BUILD_*", "not a name"])
    assert SECRET not in said
    assert [name for name, value in {**honest, "BUILD_NUMBER": "7"}.items() if f"{name}={value}" not in said] == []


def test_quintets_own_secrets_stay_with_it_without_a_sandbox(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 10: agents of a plain run inherit `QUEUE`."""
    for name in ("QUEUE", "QUINTET_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("GH_TOKEN", "kept")
    terminal = boxed.rig.terminal([[{"run": "env"}, {"reply": "{output}"}]])
    said = boxed.rig.ask(terminal, "go")
    assert SECRET not in said
    assert "GH_TOKEN=kept" in said, "all else is as before"


@pytest.fixture
def codex_like(boxed: Boxed, monkeypatch: pytest.MonkeyPatch) -> Boxed:
    """The scripted agent, with the folder of a real one."""
    own = Registration("scripted", homes=("~/.codex",), login_files=("~/.codex/auth.json",))
    monkeypatch.setattr(PROVIDER, "registration", own)
    put(boxed.home / ".codex" / "auth.json", json.dumps({"tokens": {"access": "old", "account_id": "me"}, "at": 1}))
    put(boxed.home / ".codex" / "config.toml", 'model = "m"\n')
    return boxed


def test_what_an_agent_changes_in_its_own_folder_stays_in_the_sandbox(codex_like: Boxed) -> None:
    """Finding 27: settings that name programs, instructions, programs in caches."""
    home = codex_like.home
    put(home / ".cache" / "tool" / "run", "the tool")
    attempts = (
        """echo 'notify = ["touch", "/tmp/x"]' >> ~/.codex/config.toml""",
        "echo 'do evil' > ~/.codex/AGENTS.md",
        "mkdir -p ~/.claude && echo '{}' > ~/.claude/settings.json",
        "mkdir -p ~/.cache/tool && echo evil > ~/.cache/tool/run",
        "echo evil >> ~/.bashrc; echo evil >> ~/.profile; mkdir -p ~/.local/bin; echo evil > ~/.local/bin/git",
        "mkdir -p ~/.config/git ~/.config/autostart; echo evil > ~/.config/git/config",
        "ln -sfn /etc ~/.codex/rules",
    )
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    said = codex_like.run("cat ~/.codex/auth.json ~/.codex/config.toml", *attempts)
    assert '"access": "old"' in said[0], "its own login is there"
    assert 'model = "m"' in said[0]
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def renew(boxed: Boxed, text: str) -> None:
    """Let an agent write its login file, and end its terminal."""
    terminal = boxed.terminal([f"cat > ~/.codex/auth.json <<'E'\n{text}\nE"])
    boxed.rig.ask(terminal, "go")
    assert boxed.rig.http.delete(f"/terminals/{terminal}").status_code == 200


def test_a_renewed_login_is_copied_back(codex_like: Boxed) -> None:
    """An honest neighbour of finding 27: the login was renewed by the agent's program."""
    login = codex_like.home / ".codex" / "auth.json"
    login.chmod(0o600)
    renewed = {"tokens": {"access": "new", "account_id": "me"}, "at": 2}
    renew(codex_like, json.dumps(renewed))
    assert json.loads(login.read_text()) == renewed
    assert stat.S_IMODE(login.stat().st_mode) == 0o600


@pytest.mark.attacks
def test_roles_and_the_user_share_a_renewed_login_while_they_run(codex_like: Boxed) -> None:
    """An honest neighbour of finding 27: a login that was renewed makes the old one worthless."""
    login = codex_like.home / ".codex" / "auth.json"
    new = {"tokens": {"access": "new", "account_id": "me"}, "at": 2}
    first = codex_like.terminal([f"echo '{json.dumps(new)}' > ~/.codex/auth.json"])
    second = codex_like.terminal(["until grep new ~/.codex/auth.json; do sleep 0.05; done"], session="u")
    codex_like.rig.send(second, "go")
    codex_like.rig.ask(first, "go")
    codex_like.rig.until(second, "completed")
    assert json.loads(eventually(login.read_text, "the new login", wanted=lambda text: "new" in text)) == new


@pytest.mark.attacks
@pytest.mark.parametrize(
    "text",
    [
        "not json",
        json.dumps({"tokens": {"access": "new", "account_id": "me"}, "at": 2, "hook": "touch /tmp/x"}),
        json.dumps({"tokens": {"access": "new", "account_id": "somebody else"}, "at": 2}),
        json.dumps({"tokens": "new", "at": 2}),
        json.dumps({"tokens": {"access": "x" * (2 << 20), "account_id": "me"}, "at": 2}),
    ],
    ids=["no JSON", "another key", "another account", "another shape", "too large"],
)
def test_what_is_no_renewed_login_is_not_copied_back(codex_like: Boxed, text: str) -> None:
    """Finding 27: the login file as a way out."""
    login = codex_like.home / ".codex" / "auth.json"
    before = login.read_text()
    terminal = codex_like.terminal([[{"write": {"path": str(login), "text": text}}, {"reply": "ok"}]])
    codex_like.rig.ask(terminal, "go")
    codex_like.rig.http.delete(f"/terminals/{terminal}")
    assert login.read_text() == before


@pytest.mark.attacks
@pytest.mark.parametrize("what", ["mkfifo {}", "ln -s /dev/zero {}", "ln -s {}.ssh/id_ed25519 {}", "mkdir {}"])
def test_a_login_that_is_no_file_is_left_alone(codex_like: Boxed, what: str) -> None:
    """Findings 26 and 27: a FIFO, a device, a link or a folder in the login's place."""
    login = codex_like.home / ".codex" / "auth.json"
    before = login.read_text()
    order = what.format(*[str(codex_like.home) + "/", str(login)][-what.count("{}") :])
    terminal = codex_like.terminal([f"rm ~/.codex/auth.json; {order}"])
    codex_like.rig.ask(terminal, "go")
    assert codex_like.rig.http.delete(f"/terminals/{terminal}").status_code == 200
    assert login.read_text() == before


@pytest.mark.attacks
def test_a_login_that_the_user_has_renewed_meanwhile_is_kept(codex_like: Boxed) -> None:
    """Finding 27: the agent's older login does not replace the user's newer one."""
    login = codex_like.home / ".codex" / "auth.json"
    gate, wait = codex_like.rig.wd / "gate", f"while ! test -e {codex_like.rig.wd}/gate; do sleep 0.01; done"
    mine = json.dumps({"tokens": {"access": "agent", "account_id": "me"}, "at": 2})
    terminal = codex_like.terminal([f"{wait}; cat ~/.codex/auth.json; echo '{mine}' > /tmp/a"])
    codex_like.rig.send(terminal, "go")
    newer = json.dumps({"tokens": {"access": "user", "account_id": "me"}, "at": 3})
    login.write_text(newer)
    folder = codex_like.folder(terminal)
    eventually(lambda: "user" in (folder / "home/.codex/auth.json").read_text(), "the user's login inside")
    gate.touch()
    codex_like.rig.until(terminal, "completed")
    codex_like.rig.http.delete(f"/terminals/{terminal}")
    assert login.read_text() == newer


def test_a_program_planted_on_the_path_is_not_run_outside() -> None:
    """Finding 25: a `git` and a `tmux` in a folder of the work tree, and of the home, that is on `PATH`."""
    with attack() as made:
        tree, home = made.run.wd, made.home
        for folder in (tree / "bin", home / ".local" / "share" / "pnpm"):
            folder.mkdir(parents=True)
        path = os.pathsep.join([str(tree / "bin"), f"{home}/.local/share/pnpm", "bin", ".", os.environ["PATH"]])
        evil = f'#!/bin/sh\\ntouch {tree}/../pwned\\nexec /usr/bin/$(basename $0) "$@"\\n'
        plant = "; ".join(
            f"mkdir -p {folder}; printf '{evil}' > {folder}/{name}; chmod 755 {folder}/{name}"
            for folder in ("bin", "~/.local/share/pnpm", ".")
            for name in ("git", "tmux", "bwrap", "gh")
        )
        made.carry_out({"programmer": [plant]}, POST_GIT_COMMIT="1", PATH=path)
        assert made.code == 0, made.evidence
        assert not (tree.parent / "pwned").exists(), made.evidence


def program(path: Path, text: str) -> Path:
    put(path, text).chmod(0o755)
    return path


@pytest.mark.parametrize("place", ["home", "tmp"])
def test_programs_of_the_user_can_be_started(boxed: Boxed, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Honest neighbours of finding 16: programs as npm, pipx, cargo and others install them, below `~` and `/tmp`."""
    base = boxed.home if place == "home" else boxed.rig.root / "opt"
    put(base / ".nvm/v20/lib/node_modules/cli/lib.sh", "echo npm")
    main = program(base / ".nvm/v20/lib/node_modules/cli/bin/cli.js", '#!/bin/sh\n. "$(dirname "$0")/../lib.sh"\n')
    program(base / ".nvm/v20/bin/node", "#!/bin/sh\necho node\n")
    (base / ".nvm/v20/bin/npmcli").symlink_to("../lib/node_modules/cli/bin/cli.js")
    venv = base / ".local/share/pipx/venvs/tool"
    put(venv / "lib/mod.sh", "echo pipx")
    put(venv / "pyvenv.cfg", "")
    program(venv / "bin/tool", f"#!/bin/sh\n. {venv}/lib/mod.sh\n")
    program(base / ".local/bin/plain", "#!/bin/sh\necho plain\n")
    (base / ".local/bin/tool").symlink_to(venv / "bin/tool")
    program(base / ".local/share/claude/versions/2.1", "#!/bin/sh\necho native\n")
    (base / ".local/bin/native").symlink_to(base / ".local/share/claude/versions/2.1")
    program(base / ".cargo/bin/rg", "#!/bin/sh\necho cargo\n")
    put(base / ".cargo/credentials.toml", SECRET)
    put(base / ".local/share/keyrings/login", SECRET)
    put(base / ".docker/config.json", SECRET)
    program(base / ".docker/bin/docker", "#!/bin/sh\necho docker\n")
    program(base / "real/bin/linked", "#!/bin/sh\necho linked\n")
    (base / "way").symlink_to("real")
    folders = (".nvm/v20/bin", ".local/bin", ".cargo/bin", "way/bin", ".docker/bin")
    monkeypatch.setenv("PATH", os.pathsep.join([*(f"{base}/{name}" for name in folders), os.environ["PATH"]]))
    told = boxed.run(
        "sh $(readlink -f $(command -v npmcli)); tool; plain; native; rg; linked; node; docker",
        f"grep -r {SECRET} {base}; echo x > {base}/.local/bin/plain; echo x >> {main}; echo done",
    )
    assert told[0].split() == ["0:", "npm", "pipx", "plain", "native", "cargo", "linked", "node", "docker"]
    assert SECRET not in told[1]
    assert "echo plain" in (base / ".local/bin/plain").read_text()
    assert main.read_text().startswith("#!/bin/sh")


@pytest.mark.attacks
def test_an_agent_of_the_users_own_below_tmp_starts_without_a_setting(boxed: Boxed) -> None:
    """An honest neighbour: the script of an agent that the user has defined is in a folder that the sandbox covers."""
    script = put(boxed.rig.root / "agents" / "mine.py", "import part\nprint(part.WORD, flush=True)\ninput()\n")
    put(script.parent / "part.py", "WORD = 'no JSON, but it runs'\n")
    rig = boxed.rig
    params = {**rig.wish(), "provider": "mine", "session_name": "o"}
    del params["args"]
    body = {
        "env_vars": {"HOME": str(boxed.home)},
        "sandbox": {"tmp": str(boxed.tmp)},
        "agent": {"command": [sys.executable, str(script)]},
    }
    answer = rig.http.post("/sessions", params=params, json=body)
    assert "no JSON, but it runs" in answer.text
