"""What a pane shows, in colour, and the servers that only show."""

import httpx
import pytest

from quintet.ansi import only_colours
from tests.server.rig import Rig


def test_the_screen_of_a_terminal(rig: Rig) -> None:
    terminal = rig.terminal([[{"run": "printf '\\033[31mred\\033[0m plain'"}, {"reply": "ok"}]])
    rig.ask(terminal, "go")
    seen = rig.http.get(f"/terminals/{terminal}/screen").json()
    assert (seen["columns"], seen["rows"]) == (160, 50)
    assert "Scripted agent" in seen["text"]
    assert len(seen["cursor"]) == 2
    assert "red" in seen["text"]
    rig.http.post(f"/terminals/{terminal}/exit")
    assert rig.http.get("/terminals/00000000/screen").status_code == 404
    answer = rig.http.get(f"/terminals/{terminal}/screen")
    assert answer.status_code == 404 or "Bye." in answer.json()["text"]


def test_output_is_told_even_where_somebody_else_asks_for_the_status(rig: Rig) -> None:
    gates = [rig.gate(name) for name in "ab"]
    terminal = rig.terminal([[{"say": "1"}, gates[0][1], {"say": "2"}, gates[1][1], {"reply": "3"}]])
    with rig.http.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        rig.send(terminal, "go")
        with httpx.Client(base_url=rig.server.url, headers=rig.http.headers, trust_env=False) as other:
            for gate, _ in gates:
                for line in lines:
                    other.get(f"/terminals/{terminal}")  # a poll must not swallow the news
                    if line == "event: output":
                        break
                gate.touch()
            assert any(line == "event: output" for line in lines)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("a \x1b[1;31mb\x1b[0m", "a \x1b[1;31mb\x1b[0m"),
        ("\x1b[38:2::1:2:3mx\x1b[m", "\x1b[38:2::1:2:3mx\x1b[m"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07t", "t"),
        ("\x1b(B\x0e\x07bell", "bell"),
        ("end\x1b", "end"),
    ],
)
def test_only_colours_pass(line: str, kept: str) -> None:
    assert only_colours(line) == kept
