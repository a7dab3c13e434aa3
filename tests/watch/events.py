"""Journals for tests: events with times that are counted in seconds from a beginning."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from quintet.api.models import TokenCount
from quintet.loop import journal
from quintet.loop.journal import Event
from quintet.loop.record.journal_file import Journal
from quintet.roles import ANALYST, PEER_ANALYST, PROGRAMMER, ROLES, TESTER, Role

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def at(seconds: float, event: Event) -> Event:
    return event.model_copy(update={"at": (START + timedelta(seconds=seconds)).isoformat()})


def started(seconds: float = 0.0) -> list[Event]:
    terminals = [
        at(
            seconds,
            journal.TerminalCreated(role=role.name, terminal=f"0000000{number}", provider="scripted", seconds=1),
        )
        for number, role in enumerate(ROLES)
    ]
    first = journal.RunStarted(run_id="20260102-030405-abcdef", wd="/project", start_agent=ANALYST.name)
    return [at(seconds, first), *terminals]


def sent(seconds: float, role: Role, number: int = 1, cycle: int = 1, file: str = "") -> Event:
    step = f"{number}-{cycle}-{role.output}"
    return at(
        seconds,
        journal.PromptSent(step=step, role=role.name, round=number, cycle=cycle, characters=100, file=file),
    )


def taken(
    seconds: float, role: Role, number: int = 1, cycle: int = 1, *, tokens: int | None = None, file: str = ""
) -> Event:
    used = TokenCount(input=tokens, cached=tokens // 2, output=10) if tokens is not None else None
    return at(
        seconds,
        journal.ReplyTaken(
            step=f"{number}-{cycle}-{role.output}",
            role=role.name,
            characters=50,
            source="file",
            file=file,
            tokens=used,
        ),
    )


def reviewed(seconds: float, approved: bool, role: Role = PEER_ANALYST, number: int = 1, cycle: int = 1) -> Event:
    return at(
        seconds,
        journal.ReviewJudged(
            phase=role.phase,
            round=number,
            cycle=cycle,
            verdict="APPROVED" if approved else "REVISE",
            approved=approved,
            evidence=("artifact", "handoff"),
            reason="approved" if approved else "the reviewer asks for changes",
        ),
    )


def verdict_of(seconds: float, verdict: str, number: int = 1) -> Event:
    return at(seconds, journal.TestJudged(round=number, verdict=verdict, reason="the tester's verdict"))


def finished(seconds: float, status: str, number: int = 1) -> Event:
    return at(seconds, journal.RunFinished(status=status, round=number))


def failed_run() -> list[Event]:
    """One round that fails, with every kind of warning in it."""
    return [
        *started(),
        sent(10, ANALYST),
        taken(20, ANALYST, tokens=1000),
        sent(20, PEER_ANALYST),
        at(25, journal.GuardReleased(role=PEER_ANALYST.name, seconds=5)),
        at(26, journal.Reminded(role=PEER_ANALYST.name, number=1)),
        taken(30, PEER_ANALYST, tokens=500),
        reviewed(30, False),
        at(30, journal.ReviewsUsedUp(phase="analyst", round=1, cycles=1)),
        sent(30, PROGRAMMER),
        taken(40, PROGRAMMER, tokens=2000),
        sent(40, TESTER),
        taken(50, TESTER, tokens=100),
        verdict_of(50, "FAIL"),
        at(50, journal.RoundFailed(round=1, last=True)),
        finished(51, "FAIL"),
    ]


def write(folder: Path, events: list[Event]) -> Path:
    """A run's folder with a journal that has these events at these times."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(event.model_dump_json() + "\n" for event in events)
    (folder / "journal.jsonl").write_text(lines, encoding="utf-8")
    assert len(list(Journal(folder / "journal.jsonl").read())) == len(events)
    return folder
