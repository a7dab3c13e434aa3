"""What `quintet detect` is given."""

import contextlib
import io
from typing import Any

from hypothesis import strategies as st

from harness.fuzz.files import told, written
from harness.fuzz.hostile import as_bytes, json_objects, json_values, texts
from harness.fuzz.properties import holds
from harness.fuzz.words import ROWS
from quintet.cli.detect import detect

_values = json_values(ROWS, ("screen", "pane_title"))
_recordings = st.lists(
    json_objects(("screen", "pane_title", "pane_current_command", "alternate_on"), _values) | _values, max_size=3
).map("\n".join)


@holds("input of detect", st.tuples(st.sampled_from(("codex", "claude_code", "cat")), as_bytes(
    texts(ROWS, size=12) | _recordings
), st.booleans()))  # fmt: skip
def a_file_has_a_status_or_one_line(found: Any) -> None:
    provider, data, jsonl = found
    path = written(data, "screen.txt")
    with told(), contextlib.redirect_stdout(io.StringIO()):
        detect(provider, path, jsonl)
