"""The word that a run's own server leaves of itself, where the disk does not take it."""

import errno
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from quintet import files
from quintet.api.client import ApiClient
from quintet.api.quintet_backend import backend_of
from quintet.errors import ServerError
from quintet.server.http.embedded import EmbeddedServer
from tests.eventually import eventually
from tests.server.rig import Rig


def test_a_discovery_file_that_cannot_be_written_is_one_line(tmp_path: Path, rig: Rig) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ServerError, match=r"server\.json: cannot be written"):
        EmbeddedServer([], tmp_path / "file" / "server.json", rig.state_folder).start()


def test_word_of_a_new_session_is_left_when_there_is_room_again(
    tmp_path: Path, own_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = own_rig
    path = tmp_path / ".tmp" / "server.json"
    full = threading.Event()

    def write(target: Path, text: str, below: Path) -> None:
        if full.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        files.write(target, text, below)

    monkeypatch.setattr("quintet.server.http.embedded.files", SimpleNamespace(write=write))
    with EmbeddedServer([], path, rig.state_folder) as server:
        full.set()
        client = backend_of(ApiClient(server.url, str(tmp_path), token=server.token))
        client.create_session("tester", "scripted", session_name="full")
        assert json.loads(path.read_text(encoding="utf-8"))["sessions"] == []
        full.clear()
        eventually(lambda: json.loads(path.read_text(encoding="utf-8"))["sessions"] == ["cao-full"], "the new session")
        client.close()
    assert [entry.name for entry in path.parent.iterdir()] == [".gitignore"]
