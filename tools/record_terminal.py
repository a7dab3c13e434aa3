"""Record a terminal in which `quintet demo` runs, as docs/images/demo.svg: `python tools/record_terminal.py`.

The program runs in a real tmux pane; what that shows is captured a few times a second, and the different pictures
become a film strip that CSS moves. The file needs nothing from outside. Where motion is not wanted, or the viewer
cannot move anything, it shows one picture of the live view.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.style import Style
from rich.text import Text

IMAGE: Final = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"
COLUMNS, ROWS = 118, 30
LOOK_SECONDS: Final = 0.25
LAST_SECONDS: Final = 6.0
"""how long the last picture stays before the film begins again"""
LONGEST_SECONDS: Final = 120.0
LARGEST: Final = 300_000
CELL_WIDTH, CELL_HEIGHT, FONT = 7.8, 17, 13
MARGIN, BAR = 14, 30
GROUND, PLAIN, DIM = "#14171c", "#d7dce4", "#8b93a1"
COLOURS: Final = {1: "#f2777a", 2: "#8fd18f", 3: "#e8c06a", 6: "#6fc3dc"}
"""by their number in a terminal: red, green, yellow, cyan"""
END: Final = "a project of yours:"
"""words of the demo's last lines"""
LIVE: Final = "last verdict"
"""words that only the live view shows"""

Picture = tuple[str, ...]


@dataclass
class Film:
    """Pictures with the moments at which they appear."""

    pictures: list[Picture] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)

    def add(self, picture: Picture, moment: float) -> None:
        if not self.pictures or picture != self.pictures[-1]:
            self.pictures.append(picture)
            self.moments.append(moment)

    @property
    def still(self) -> int:
        """The picture for those who see no motion: the last one of the live view."""
        return max(number for number, picture in enumerate(self.pictures) if any(LIVE in line for line in picture))

    @property
    def seconds(self) -> float:
        return self.moments[-1] + LAST_SECONDS


class Pane:
    """A tmux pane of its own server, with a shell and nothing of the user's in it."""

    def __init__(self, place: Path) -> None:
        self.socket = place / "tmux"
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        (place / "home").mkdir()
        self.env = {"PATH": programs, "HOME": str(place / "home"), "XDG_STATE_HOME": str(place / "x")}
        self.env |= {"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "tmux-256color", "PS1": "$ ", "TMPDIR": str(place)}
        words = ["env", "-i", *(f"{name}={value}" for name, value in self.env.items()), "sh"]
        self.call("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), *words)

    def call(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", str(self.socket), *words], capture_output=True, text=True, check=True)
        return done.stdout

    def picture(self) -> Picture:
        return tuple(self.call("capture-pane", "-e", "-p").removesuffix("\n").split("\n"))

    def end(self) -> None:
        self.call("kill-server")
        subprocess.run(["quintet", "stop", "--all"], env=self.env, capture_output=True, check=False)


def record(pane: Pane, command: str) -> Film:
    """Type the command, and look until it has ended."""
    film, begun = Film(), time.monotonic()
    while "$" not in pane.picture()[0]:
        time.sleep(LOOK_SECONDS)
    for letter in command:
        pane.call("send-keys", "-l", letter)
        time.sleep(LOOK_SECONDS / 3)
        film.add(pane.picture(), time.monotonic() - begun)
    pane.call("send-keys", "Enter")
    while not _has_ended(film):
        assert time.monotonic() - begun < LONGEST_SECONDS, "the command does not end"
        time.sleep(LOOK_SECONDS)
        film.add(pane.picture(), time.monotonic() - begun)
    film.moments = [moment - film.moments[0] for moment in film.moments]
    return film


def _has_ended(film: Film) -> bool:
    last = [line for line in film.pictures[-1] if line.strip()]
    return any(END in line for line in last) and last[-1].strip() == "$"


def draw(film: Film) -> str:
    """The film as SVG. Each different line of text is drawn once and used wherever it stands."""
    width, height = round(COLUMNS * CELL_WIDTH), ROWS * CELL_HEIGHT
    lines = {line: f"l{number}" for number, line in enumerate(dict.fromkeys(_lines(film)))}
    strip = "".join(
        f'<use href="#{lines[line]}" y="{number * height + row * CELL_HEIGHT}"/>'
        for number, picture in enumerate(film.pictures)
        for row, line in enumerate(picture)
        if line in lines
    )
    steps = "".join(
        f"{100 * moment / film.seconds:.2f}%{{transform:translateY({-number * height}px)}}"
        for number, moment in enumerate(film.moments)
    )
    style = (
        f"text{{font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"fill:{PLAIN};white-space:pre}}.b{{font-weight:700}}.d{{fill:{DIM}}}"
        + "".join(f".c{number}{{fill:{colour}}}" for number, colour in COLOURS.items())
        + f".strip{{transform:translateY({-film.still * height}px)}}@keyframes play{{{steps}}}"
        "@media (prefers-reduced-motion:no-preference){"
        f".strip{{animation:play {film.seconds:.1f}s step-end infinite}}}}"
    )
    buttons = "".join(
        f'<circle cx="{MARGIN + 5 + 18 * number}" cy="{BAR / 2:g}" r="5" fill="#3a404b"/>' for number in range(3)
    )
    whole_width, whole_height = width + 2 * MARGIN, height + BAR + MARGIN
    drawn = "".join(f'<g id="{name}">{_draw_line(line)}</g>' for line, name in lines.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole_width} {whole_height}" '
        f'width="{whole_width}" height="{whole_height}" role="img">'
        f"<title>quintet demo, in a terminal</title><style>{style}</style><defs>{drawn}</defs>"
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>{buttons}'
        f'<svg x="{MARGIN}" y="{BAR}" width="{width}" height="{height}"><g class="strip">{strip}</g></svg></svg>\n'
    )


def _lines(film: Film) -> Iterator[str]:
    return (line for picture in film.pictures for line in picture if line.strip())


def _draw_line(line: str) -> str:
    console = Console(width=COLUMNS, color_system="truecolor", force_terminal=True)
    column, parts = 0, []
    for segment in Text.from_ansi(line).render(console):
        text, start = segment.text.rstrip("\n"), column
        column += len(text)
        if text.strip():
            parts.append(_draw_words(text, start, segment.style or Style()))
    return "".join(parts)


def _draw_words(text: str, column: int, style: Style) -> str:
    """One stretch in one style; its length is given, so that columns stand whatever the font is."""
    begin = column + len(text) - len(text.lstrip())
    words = text.strip()
    x, width = begin * CELL_WIDTH, len(words) * CELL_WIDTH
    colour = style.color.number if style.color else None
    names = [name for name, on in (("b", style.bold), ("d", style.dim), (f"c{colour}", colour in COLOURS)) if on]
    css = f' class="{" ".join(names)}"' if names else ""
    ground = ""
    if style.reverse:
        ground = f'<rect x="{x:.1f}" y="1" width="{width:.1f}" height="{CELL_HEIGHT - 1}" fill="{PLAIN}"/>'
        css = f'{css} style="fill:{GROUND}"'
    return f'{ground}<text x="{x:.1f}" y="{FONT}" textLength="{width:.1f}"{css}>{escape(words)}</text>'


def main() -> None:
    place = Path(tempfile.mkdtemp(prefix="qr", dir="/tmp"))
    try:
        pane = Pane(place)
        try:
            film = record(pane, "quintet demo")
        finally:
            pane.end()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    drawn = draw(film)
    assert len(drawn) < LARGEST, f"{len(drawn):,} bytes are too many"
    IMAGE.write_text(drawn, encoding="utf-8")
    print(f"{IMAGE.name}: {len(film.pictures)} pictures, {film.seconds:.0f} s, {len(drawn):,} bytes")


if __name__ == "__main__":
    main()
