"""Whether an agent did anything in a turn that its verdict could rest on."""

import re
from typing import Final

from quintet.actions import Action, ActionKind, TurnActions, without_bodies
from quintet.layout import RESPONSE_DIR
from quintet.roles import TESTER, Role

_RESPONSE: Final = RESPONSE_DIR.as_posix()
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")
_PARTS = re.compile(r"\n|;|\|\|?|(?<!>)&&?(?!>)")
_IDLE = re.compile(
    r"""
      [({\s]* (?:\w+=\S*\s*)*     # variables
      (?: (?:cd|mkdir|true|false|:|echo|printf|sleep|exit|set|export|pwd|umask|wait|date|touch) (?:\s.*)?
        | fi|done|then|else|do|esac
        | cat\s*(?:[<>].*)?
        | [(){}…\s]*
      )
    """,
    re.VERBOSE | re.DOTALL,
)
"""a part of a command that looks at nothing and tries nothing"""


def did_work(role: Role, actions: TurnActions | None) -> bool | None:
    """Whether the verdict of a role can rest on what it did: a tester has to run something, a reviewer to look.

    None where no record tells. What an agent does to write its response down does not count.
    """
    if actions is None:
        return None
    kinds = {ActionKind.COMMAND, ActionKind.TOOL} | ({ActionKind.READ} if role is not TESTER else set())
    return bool(actions.left_out) or any(one.kind in kinds and is_work(one) for one in actions.items)


def is_work(action: Action) -> bool:
    """Whether an action does more than write down the response."""
    if action.kind is not ActionKind.COMMAND:
        return _RESPONSE not in action.text
    plain = _QUOTED.sub(
        lambda found: _RESPONSE if _RESPONSE in found[0] else "''", without_bodies(action.text, ends=False)
    )
    parts = (part.strip() for part in _PARTS.split(plain))
    return any(part and _RESPONSE not in part and not _IDLE.fullmatch(part) for part in parts)
