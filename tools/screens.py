"""Labelled recordings of agent screens, packed small enough to live in the repository.

    python -m tools.screens pack DIR ...     add the recordings in DIR/*.jsonl to tests/providers/screens/
    python -m tools.screens list             what is there, by release

A recording is one JSON object: what the recorder knew (`state_label`, `scenario`) and one captured frame. A release
that is packed again replaces its former recordings of the same sizes.
"""

import json
import lzma
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from quintet.providers.screen import Screen

STORE = Path(__file__).parents[1] / "tests/providers/screens"
PATHS_OF_SOMEBODY = re.compile(r"(?<![\w.~])/(?:home/(?!dev\b)|root\b|Users/|work/|tmp/|mnt/)[^\s)\]]*")


@dataclass(frozen=True)
class Recording:
    """One frame, and what was true when it was taken."""

    cli: str
    version: str
    cols: int
    rows: int
    state_label: str
    scenario: str
    screen: str
    pane_title: str
    pane_current_command: str
    alternate_on: bool

    @property
    def release(self) -> str:
        return f"{self.cli}-{self.version}"

    @property
    def size(self) -> str:
        return f"{self.cols}x{self.rows}"

    @property
    def set(self) -> tuple[str, str]:
        """What is recorded in one go."""
        return self.release, self.size

    @property
    def name(self) -> str:
        return f"{self.release} {self.state_label}/{self.scenario} {self.size}"

    @property
    def frame(self) -> Screen:
        return Screen(self.screen, self.pane_title, self.pane_current_command, self.alternate_on)


KEPT = tuple(field.name for field in fields(Recording))


def load(cli: str) -> list[Recording]:
    """The packed recordings of `codex` or `claude`."""
    packed = STORE / f"{cli}.jsonl.xz"
    if not packed.exists():
        return []
    return [Recording(**json.loads(line)) for line in lzma.decompress(packed.read_bytes()).decode().splitlines()]


def read_folder(folder: Path) -> list[Recording]:
    """The recordings in the files of a folder, less what the readers do not see and what is there twice."""
    lines = (line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines())
    read = (Recording(**{name: value for name, value in json.loads(line).items() if name in KEPT}) for line in lines)
    return list(dict.fromkeys(read))


def pack(recordings: Iterable[Recording]) -> None:
    """Adds recordings to the store; what names a place on somebody's machine is refused."""
    new = list(recordings)
    for recording in new:
        found = PATHS_OF_SOMEBODY.search(recording.screen) or PATHS_OF_SOMEBODY.search(recording.pane_title)
        if found:
            raise SystemExit(f"{recording.name} names {found[0]}: record it in a home of its own")
    for cli in {recording.cli for recording in new}:
        replaced = {recording.set for recording in new}
        kept = [recording for recording in load(cli) if recording.set not in replaced]
        together = sorted(
            [*kept, *(recording for recording in new if recording.cli == cli)],
            key=lambda recording: [int(number) for number in re.findall(r"\d+", recording.version)],
        )
        _write(cli, together)


def _write(cli: str, recordings: Sequence[Recording]) -> None:
    STORE.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(asdict(recording), ensure_ascii=False, separators=(",", ":")) for recording in recordings)
    packed = lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    (STORE / f"{cli}.jsonl.xz").write_bytes(packed)


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case ["pack", *folders] if folders:
            pack([recording for folder in folders for recording in read_folder(Path(folder))])
        case ["list"]:
            counts = Counter(recording.release for cli in ("codex", "claude") for recording in load(cli))
            for release, count in counts.items():
                print(f"{release:<16} {count}")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
