"""The event stream."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from quintet.server import events
from tests.server.rig import Rig


def frames(lines: Iterator[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Server-sent events: id, kind, data."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields["id"], fields["event"], json.loads(fields["data"])
            fields = {}


def history(rig: Rig, last: str | None = None) -> list[tuple[str, str, dict[str, Any]]]:
    headers = {"Last-Event-ID": last} if last else {}
    answer = rig.http.get("/events?follow=false", headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    return list(frames(iter(answer.text.split("\n"))))


def test_a_turn_is_told_while_nobody_asks(own_rig: Rig) -> None:
    rig = own_rig  # a snapshot also lists the sessions of earlier tests
    gate, wait = rig.gate()
    terminal = rig.terminal([[{"say": "a"}, wait, {"reply": "ok"}]])
    seen: list[tuple[str, Any]] = []
    with rig.http.stream("GET", "/events") as stream:
        events = frames(stream.iter_lines())
        _, kind, snapshot = next(events)
        assert kind == "snapshot"
        assert [one["terminal"] for one in snapshot["terminals"]] == [terminal]
        rig.send(terminal, "go")
        for _, kind, data in events:
            assert data["terminal"] == terminal
            seen.append((kind, data.get("state") or data.get("status")))
            if seen[-1] == ("status", "processing"):
                gate.touch()
            if seen[-1] == ("turn", "ended"):
                break
    kinds = [one for one in seen if one[0] != "output"]
    assert kinds[:2] in ([("turn", "began"), ("status", "processing")], [("status", "processing"), ("turn", "began")])
    assert kinds[2:] == [("status", "completed"), ("turn", "ended")]
    assert ("output", None) in seen


def test_a_reader_goes_on_where_it_stopped(rig: Rig) -> None:
    terminal = rig.terminal()
    last, kind, _ = history(rig)[-1]
    assert kind == "snapshot"
    rig.ask(terminal, "one")
    missed = history(rig, last)
    assert [one for one in missed if one[1] == "turn"]
    assert all(one[1] != "snapshot" for one in missed)
    middle = missed[1][0]
    assert history(rig, middle)[: len(missed) - 2] == missed[2:]
    for last in ("0000-5", "nonsense", f"{history(rig)[0][0]}99999"):
        assert history(rig, last)[0][1] == "snapshot"


def test_a_reader_that_has_missed_too_much_starts_afresh(monkeypatch: Any) -> None:
    monkeypatch.setattr(events, "KEPT", 3)

    async def check() -> None:
        memory = events.EventLog()
        for _ in range(10):
            memory.add("x")
        assert memory.resume_point(f"{memory.start_id}-5") is None
        assert memory.resume_point(f"{memory.start_id}-7") == 7
        assert memory.resume_point(f"{memory.start_id}-10") == 10
        assert memory.resume_point(f"{memory.start_id}-11") is None

    asyncio.run(check())


def test_what_happens_during_the_snapshot_is_told_after_it() -> None:
    async def check() -> None:
        memory = events.EventLog()
        memory.add("before")

        async def snapshot() -> dict[str, Any]:
            memory.add("meanwhile")
            return {}

        stream = memory.stream(None, snapshot, follow=False)
        told = [kind for _, kind, _ in frames(iter("".join([frame async for frame in stream]).split("\n")))]
        assert told == ["snapshot", "meanwhile"]

    asyncio.run(check())


def test_a_stream_ends_with_its_server(own_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.server.http.embedded.LAST_EVENTS_SECONDS", 0.1)
    rig = own_rig
    with rig.http.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        rig.server.stop()
        list(lines)


@pytest.mark.parametrize("number", ["9" * 5000, "²", "٣", "-1", "1x", ""])
def test_a_reader_with_a_number_that_is_none_starts_afresh(number: str) -> None:
    memory = events.EventLog()
    memory.add("status")
    assert memory.resume_point(f"{memory.start_id}-1") == 1
    assert memory.resume_point(f"{memory.start_id}-{number}") is None
