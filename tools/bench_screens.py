"""Measures what reading one screen costs: `python -m tools.bench_screens`."""

import time
from collections.abc import Callable

from quintet.api.status import TerminalStatus
from quintet.providers.claude_code.screen import read_screen as read_claude_code
from quintet.providers.codex.screen import read_screen as read_codex
from quintet.providers.screen import Screen
from tools.screens import load

ROUNDS = 20


def microseconds_per_frame(reader: Callable[[Screen], TerminalStatus], frames: list[Screen]) -> float:
    """The mean over all frames, in the best of several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for frame in frames:
            reader(frame)
        rounds.append(time.perf_counter() - start)
    return min(rounds) / len(frames) * 1e6


def main() -> None:
    for name, reader, cli in (("codex", read_codex, "codex"), ("claude_code", read_claude_code, "claude")):
        frames = [recording.frame for recording in load(cli)]
        print(f"reading a screen, {name:<12} {microseconds_per_frame(reader, frames):6.1f} µs  ({len(frames)} frames)")


if __name__ == "__main__":
    main()
