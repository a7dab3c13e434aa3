"""Prompts that a person types into a real agent's terminal are told; what Quintet types there never is."""

import subprocess

import pytest

from tests.e2e.desk import AT_REST, Desk, desk
from tests.e2e.orders import orders
from tests.e2e.rig import Cast, each_cli

pytestmark = pytest.mark.e2e_all


def type_by_hand(agent: Desk, words: str, turn: int) -> None:
    """Press keys as somebody does who has attached to the terminal, and wait until it is told, after that turn."""
    (socket,) = (agent.rig.project.parent / "x/quintet/s").iterdir()
    tmux = ["tmux", "-S", str(socket), "send-keys"]
    subprocess.run([*tmux, "-l", words], check=True)
    agent.until(lambda _: words in agent.output())
    subprocess.run([*tmux, "Enter"], check=True)
    # the agent writes the prompt down before it asks its model, and may look idle in between
    agent.until(lambda _: any(words in asked.prompt for asked in agent.rig.model.turns))
    agent.until(lambda found: found["typed_after"] == turn and found["status"] in AT_REST)


def typed_after(agent: Desk) -> int | None:
    found: int | None = agent.until(lambda found: found["status"] in AT_REST)["typed_after"]
    return found


@each_cli
def test_only_a_persons_prompts_are_told(cast: Cast) -> None:
    with desk(cast) as agent:
        agent.open()
        agent.send(f"/rename programmer-{agent.terminal}")
        assert typed_after(agent) is None, "the renaming is ours"
        command = {"command": "echo a tool was used"}
        for number in (1, 2):
            agent.order(command, {"text": f"Done with {number}."}, words="Two lines\nof a prompt.")
            assert typed_after(agent) is None, f"prompt {number} is ours"
        agent.send(f"/rename programmer-{agent.terminal}")
        assert typed_after(agent) is None, "nor is a renaming after a turn a person's"
        turn = agent.look()["turn"]
        type_by_hand(agent, "what do you think of this?", turn)
        agent.order({"text": "On with it."})
        assert typed_after(agent) is None, "our next turn begins anew"
        agent.send(f"Take your time.\n{orders(command, {'text': 'Slow.', 'delay': 3.0})}")
        type_by_hand(agent, "and what of that?", turn + 2)


@each_cli
def test_a_persons_prompt_before_our_first_one_is_told(cast: Cast) -> None:
    with desk(cast) as agent:
        agent.open()
        agent.send(f"/rename programmer-{agent.terminal}")
        type_by_hand(agent, "hello there", 0)
