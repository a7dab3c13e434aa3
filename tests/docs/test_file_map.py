"""The list of all files in docs/architecture.md is that of the files."""

from tools.file_map import PAGE, page


def test_the_list_of_files_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python tools/file_map.py"
