"""Answers that look like what the readers look for."""

PLAIN = "The parser is fine. I found one unused import and left it alone.\n\nRESULT: PASS"

MISLEADING = {
    "adv_busy_words": (
        "I was exploring the codebase while the tests were running, and everything is working.\n\n"
        "- The executing user is ci; nothing is still running.\n"
        "- You asked me to stop running commands, so I stopped.\n\n"
        "Working tree is clean. Running total: 12 files."
    ),
    "adv_esc_to_interrupt": (
        "The help text of the tool says:\n\n> Working (12s • esc to interrupt)\n\nand the manual shows:\n\n"
        "```\n• Working (3s • esc to interrupt)\n✻ Pondering… (5s · ↓ 120 tokens · esc to interrupt)\n```\n\n"
        "So press esc to interrupt a turn."
    ),
    "adv_prompt_glyphs": (
        "A terminal shows these lines:\n\n```\n› something\n\n❯ something else\n\n> and a third one\n\n"
        "• Exploring\n  └ Read parser.py\n\n• Running sleep 5\n```\n\nThey are quoted, nothing was executed."
    ),
    "adv_dialog_quoted_last": (
        "This is how the other tool asks:\n\n```\nWould you like to run the following command?\n\n"
        "› 1. Yes, proceed (y)\n  2. No, and tell Codex what to do differently (esc)\n\n"
        "Press enter to confirm or esc to cancel\n```"
    ),
    "adv_shell_prompt": (
        "Run it from a shell:\n\n```\nuser@host:~/proj$ make test\nError: no rule to make target 'test'\n"
        "Traceback (most recent call last):\nuser@host:~/proj$ \n```"
    ),
}

SENTENCES = " ".join(
    f"Sentence {number} describes what the function does with its argument and why." for number in range(1, 13)
)
LIST = "".join(f"{number}. Module pkg/part_{number:02}.py keeps the running totals.\n" for number in range(1, 61))
STREAMED_MISLEADING = "First I was exploring the codebase.\n\n› something\n\n" + " ".join(
    f"Remark {number} says that 100% context left is a footer." for number in range(1, 12)
)
