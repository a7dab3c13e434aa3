"""What a host finds of the processes below it while some of them end."""

import pytest

from quintet.providers.acp import process_tree


def test_a_process_whose_parent_ends_during_the_first_look_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    host, agent, tool = 1, 2, 3
    looks = iter([[(tool, agent)], [(tool, host)]])
    monkeypatch.setattr(process_tree, "_parents", lambda: next(looks))
    assert process_tree.descendants(host) == [tool]
