"""Globs of paths in the project."""

import re
from functools import lru_cache
from typing import Final

_WILD: Final = re.compile(r"[*?\[]")


def matches(path: str, globs: tuple[str, ...]) -> bool:
    """Whether a path, or a folder that it is in, is named by one of the globs: `*` stays in a folder, `**` does not."""
    return bool(globs) and _pattern(globs).fullmatch(path) is not None


def may_match_below(folder: str, globs: tuple[str, ...]) -> bool:
    """Whether a glob could name something in a folder, whose path ends with a slash."""
    fixed = [_WILD.split(glob.removeprefix("./"), maxsplit=1)[0] for glob in globs]
    return any(part.startswith(folder) or folder.startswith(part) for part in fixed)


def named_path(glob: str) -> str:
    """The file or folder that a glob names as a whole, without a slash at its end; empty where it has wildcards."""
    path = glob.removeprefix("./").removesuffix("/**").strip("/")
    return "" if _WILD.search(path) or "\\" in path or ".." in path.split("/") else path


@lru_cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_translated(glob)})(?:/.*)?" for glob in globs), re.DOTALL)


_PARTS = re.compile(
    r"(?P<deep>(?:^|/)\*\*/)|(?P<rest>(?:^|/)\*\*$)|(?P<stars>\*+)|(?P<one>\?)|(?P<set>\[[^]]+\])", re.DOTALL
)


def _translated(glob: str) -> str:
    glob = glob.removeprefix("./").strip("/")
    out, position = [], 0
    for part in _PARTS.finditer(glob):
        out.append(re.escape(glob[position : part.start()]))
        position = part.end()
        slash = "/" if part[0].startswith("/") else ""
        match part.lastgroup:
            case "deep":
                out.append(f"{slash}(?:.*/)?")
            case "rest":
                out.append(f"{slash}.*")
            case "stars":
                out.append("[^/]*")
            case "one":
                out.append("[^/]")
            case _:
                inner = re.sub(r"([\\\[&|~^])", r"\\\1", part[0][1:-1].lstrip("!^"))
                out.append(f"(?!/)[{'^' * (part[0][1] in '!^')}{inner}]")
    return "".join(out) + re.escape(glob[position:])
