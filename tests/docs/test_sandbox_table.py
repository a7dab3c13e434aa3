"""The page on workspaces has the table of what a sandbox refuses."""

from tests.sandbox.orders import PAGE, page_with_table


def test_the_page_has_the_whole_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_with_table(text) == text, "python -m tests.sandbox.orders writes it"
