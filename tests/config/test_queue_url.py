"""The address of the queue's database: what is allowed, and that its password is shown nowhere."""

import json
from pathlib import Path

import pytest

from quintet.config import load_settings, settings_as_json
from quintet.config.kinds import DatabaseUrl
from quintet.config.load import settings_to_keep
from quintet.errors import ConfigError
from quintet.prose import without_password

SECRET = "hunter2"
URL = f"postgresql://anna:{SECRET}@db.example.org:5432/queue?sslmode=require&password={SECRET}"


@pytest.mark.parametrize(
    "url",
    ["", URL, "postgres://db/queue", "postgresql:///queue?host=/run/pg", "sqlite:////q.db", "sqlite:////a b/q.db"],
)
def test_an_address_is_taken_as_it_is(url: str) -> None:
    assert DatabaseUrl().read(url) == url


@pytest.mark.parametrize(
    "url",
    [
        *(
            "mysql://db/queue",
            "queue.db",
            "sqlite://q.db",
            "sqlite:///q.db",
            "sqlite:///",
            "sqlite:////",
            "postgresql:db",
        ),
        *(
            f"{URL} x",
            f"postgresql://anna:p@{SECRET}@db/q",
            f"postgresql://anna:p?{SECRET}@db/q",
            "postgresql://[::1/q",
        ),
        *(f"postgresql://anna:{SECRET}@db:port/q", f"postgresql://db:5432/q?password=p@{SECRET}", 5, None),
    ],
)
def test_anything_else_is_refused_without_being_shown(url: object, tmp_path: Path) -> None:
    (tmp_path / "quintet.json").write_text(json.dumps({"queue": {"url": url}}))
    with pytest.raises(ConfigError) as caught:
        load_settings(None, {}, {}, tmp_path)
    assert "queue.url in quintet.json: found something else, allowed: postgresql://" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_no_command_shows_the_password_and_no_run_keeps_it(tmp_path: Path) -> None:
    loaded = load_settings(None, {"QUEUE": URL}, {}, tmp_path)
    assert loaded.settings.queue_url == URL
    assert settings_as_json(loaded.settings)["queue.url"] == "postgresql://db.example.org:5432/queue"
    assert "queue.url" not in settings_to_keep(loaded).rows


def test_what_is_shown_of_an_address() -> None:
    assert without_password("") == ""
    assert without_password("sqlite:////home/anna/queue.db") == "sqlite:////home/anna/queue.db"
    assert without_password(f"postgresql://anna:p@{SECRET}@db/queue") == "postgresql://db/queue"
