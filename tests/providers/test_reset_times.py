"""The end of a usage limit, in the agents' words. The time zone of this machine is UTC here."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from quintet.providers.reset_times import reset_time

SAID = datetime(2026, 3, 1, 22, 30, 20, tzinfo=UTC).timestamp()


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(*numbers: int) -> float:
    return datetime(*numbers, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("You've hit your usage limit. Try again at 11:05 PM.", at(2026, 3, 1, 23, 6)),
        ("You've hit your usage limit, or try again at 1:00 AM.", at(2026, 3, 2, 1, 1)),
        ("or try again at Mar 4th, 2026 9:15 AM.", at(2026, 3, 4, 9, 16)),
        ("try again at 10:29 PM.", at(2026, 3, 1, 22, 30)),
        ("Rate limit reached. Please try again in 1.5s.", SAID + 1.5),
        ("try again in 2 hours 5 minutes", SAID + 7500),
        ("Rate limit reached. Please try again in 1m30s.", SAID + 90),
        ("Your quota will reset after 1h2m3.5s.", SAID + 3723.5),
        ("Try again in 3 days, 4 hours and 1 minute.", SAID + 273_660),
        ("You've hit your limit · resets 3am (UTC)", at(2026, 3, 2, 3, 1)),
        ("You've hit your limit · resets 3:30am (Europe/Berlin)", at(2026, 3, 2, 2, 31)),
        ("You've hit your weekly limit · resets Mar 5, 9am (UTC)", at(2026, 3, 5, 9, 1)),
        ("You've hit your limit · resets Jan 2, 12am (UTC)", at(2026, 1, 2, 0, 1)),
        ("Claude AI usage limit reached|1772406000", 1772406000.0),
        ("5-hour limit reached ∙ resets 12am", at(2026, 3, 2, 0, 1)),
        ("429 {'retry-after': '20'}", SAID + 20),
        ("Retry-After: 7", SAID + 7),
        ("limit · resets 7pm (Nowhere/Land)", at(2026, 3, 1, 19, 1)),
    ],
)
def test_the_time_is_found(text: str, end: float) -> None:
    assert reset_time(text, SAID) == end


def test_a_date_without_a_year_is_the_next_one() -> None:
    new_years_eve = at(2026, 12, 31, 20, 0)
    assert reset_time("resets Jan 2, 9am (UTC)", new_years_eve) == at(2027, 1, 2, 9, 1)


@pytest.mark.parametrize(
    "text",
    ["", "Quota exceeded. Check your plan.", "try again later", "resets 3 times", "resets 25:99", "resets 13pm",
     "try again at Feb 30th, 2026 9:15 AM", "in a minute", "at 3",
     "retry-after: Wed, 21 Oct", "Retry-After: 12:30", "resets Foo 3, 9am"],
)  # fmt: skip
def test_no_time_is_made_up(text: str) -> None:
    assert reset_time(text, SAID) is None


@pytest.mark.parametrize(
    "text", [f"try again in {'9' * 400} s", "try again in 99999999999 days", "resets Dec 31, 9999, 11pm (UTC)"]
)
def test_an_end_that_no_clock_can_show_is_none(text: str) -> None:
    assert reset_time(text, SAID) is None
