"""The kinds of values that a setting may have.

A kind reads a raw value (text, or what JSON gives) or raises ValueError, says what it allows, and has a JSON schema.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import urlsplit

from quintet.sandbox.network.rules import AllowList
from quintet.variables import VARIABLE_PATTERN, is_variable

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")
_VARIABLE_NAMES: Final = "^[A-Za-z_*][A-Za-z0-9_*]*$"
_GLOB = r"^(?![/~])(?!(?:.*/)?\.\.(?:/|$)).*[^./]"
"""what may be a path or a glob below a folder"""
_MOST_MONEY = 1e12
"""for a million tokens; more is no price"""


class Kind(Protocol):
    """A kind of value."""

    word: ClassVar[str]
    """what stands for a value in the help of a command"""

    @property
    def allowed(self) -> str: ...

    @property
    def schema(self) -> dict[str, Any]: ...

    def read(self, raw: Any) -> Any: ...


@dataclass(frozen=True)
class Text:
    """Any text."""

    word: ClassVar[str] = "TEXT"
    allowed: str = "a text"
    may_be_empty: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"} if self.may_be_empty else {"type": "string", "minLength": 1}

    def read(self, raw: Any) -> str:
        if not isinstance(raw, str) or "\0" in raw or not (raw or self.may_be_empty):
            raise ValueError
        os.fsencode(raw)  # half of a character, as JSON's \ud800, cannot be handed to any program
        return raw


@dataclass(frozen=True)
class PathText(Text):
    """A path; what has to be at it is checked where it is used."""

    word: ClassVar[str] = "PATH"
    allowed: str = "a path"
    may_be_empty: bool = False


@dataclass(frozen=True)
class Url(Text):
    """A web address, or nothing."""

    word: ClassVar[str] = "URL"
    allowed: str = "an http:// or https:// address"

    def read(self, raw: Any) -> str:
        text = super().read(raw).rstrip("/")
        parts = urlsplit(text)
        if text and (parts.scheme not in {"http", "https"} or not parts.hostname or any(map(str.isspace, text))):
            raise ValueError
        _ = parts.port  # a port that is no number raises here
        return text


@dataclass(frozen=True)
class DatabaseUrl(Text):
    """The address of a database, or nothing. It may hold a password, so that it is never shown as it is."""

    word: ClassVar[str] = "URL"
    allowed: str = "postgresql://USER@HOST/NAME with %40 for any other @, or sqlite:////FOLDER/FILE"

    def read(self, raw: Any) -> str:
        text = super().read(raw)
        scheme, _, rest = text.partition("://")
        if scheme == "sqlite" and rest.startswith("//") and not rest.endswith("/"):
            return text
        _ = urlsplit(text).port  # a port that is no number raises here
        # with a second @ a part of the password would be taken for the host, and shown
        is_plain = rest.count("@") <= 1 and "@" not in rest.partition("?")[2] and not any(map(str.isspace, text))
        if text and (scheme not in {"postgresql", "postgres"} or not rest or not is_plain):
            raise ValueError
        return text


@dataclass(frozen=True)
class Flag:
    """A switch."""

    word: ClassVar[str] = "TEXT"
    allowed: str = "true or false (also 1/0, yes/no, on/off)"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def read(self, raw: Any) -> bool:
        word = str(raw).strip().lower() if isinstance(raw, bool | int | str) else ""
        if word not in TRUE + FALSE:
            raise ValueError
        return word in TRUE


@dataclass(frozen=True)
class WholeNumber:
    """A whole number within bounds."""

    word: ClassVar[str] = "NUMBER"
    at_least: int = 0
    at_most: int = 1_000_000

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.at_least} to {self.at_most}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.at_least, "maximum": self.at_most}

    def read(self, raw: Any) -> int:
        if isinstance(raw, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", raw):
            raw = int(raw)
        if type(raw) is not int or not self.at_least <= raw <= self.at_most:
            raise ValueError
        return raw


@dataclass(frozen=True)
class Seconds:
    """A duration; fractions are allowed."""

    word: ClassVar[str] = "SECONDS"
    at_least: float = 0.0
    at_most: float = 30 * 86_400.0

    @property
    def allowed(self) -> str:
        return f"a number of seconds from {self.at_least:g} to {self.at_most:.0f}"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.at_least, "maximum": self.at_most}

    def read(self, raw: Any) -> float:
        seconds = float(raw) if isinstance(raw, str) else raw
        if type(seconds) not in (int, float) or not self.at_least <= seconds <= self.at_most:
            raise ValueError  # also for infinity and for what is no number
        return float(seconds)


@dataclass(frozen=True)
class Money:
    """An amount in the currency of the prices."""

    word: ClassVar[str] = "AMOUNT"
    allowed: str = "a number from 0 on"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": 0, "maximum": _MOST_MONEY}

    def read(self, raw: Any) -> float:
        amount = float(raw) if isinstance(raw, str) else raw
        if type(amount) not in (int, float) or not 0 <= amount <= _MOST_MONEY:
            raise ValueError
        return float(amount)


@dataclass(frozen=True)
class Prices:
    """What tokens cost: an object, in a variable as JSON."""

    word: ClassVar[str] = "JSON"
    allowed: str = (
        'an object such as {"codex": {"input": 1.25, "cached": 0.125, "output": 10}}: '
        "by model or provider, for a million tokens; cached may be left out"
    )

    @property
    def schema(self) -> dict[str, Any]:
        parts = {key: {"type": "number", "minimum": 0} for key in ("input", "cached", "output")}
        price = object_schema(parts) | {"required": ["input", "output"]}
        return {"type": "object", "additionalProperties": price}

    def read(self, raw: Any) -> dict[str, dict[str, float]]:
        try:
            value = json.loads(raw) if isinstance(raw, str) else raw
        except RecursionError:
            raise ValueError from None
        if not isinstance(value, dict):
            raise ValueError
        return {name: self._price(price) for name, price in value.items()}

    @staticmethod
    def _price(raw: Any) -> dict[str, float]:
        if not isinstance(raw, dict) or not {"input", "output"} <= raw.keys() <= {"input", "cached", "output"}:
            raise ValueError
        if not all(type(number) in (int, float) and 0 <= number <= _MOST_MONEY for number in raw.values()):
            raise ValueError
        return {name: float(number) for name, number in raw.items()}


@dataclass(frozen=True)
class Counts:
    """Names with a whole number each: an object, in a variable as JSON."""

    word: ClassVar[str] = "JSON"
    allowed: str = 'an object such as {"claude-1": 2}, with whole numbers from 1 to 1000'
    most: int = 1000

    @property
    def schema(self) -> dict[str, Any]:
        number = {"type": "integer", "minimum": 1, "maximum": self.most}
        return {"type": "object", "additionalProperties": number}

    def read(self, raw: Any) -> dict[str, int]:
        try:
            value = json.loads(raw) if isinstance(raw, str) else raw
        except RecursionError:
            raise ValueError from None
        if not isinstance(value, dict):
            raise ValueError
        return {name: WholeNumber(1, self.most).read(number) for name, number in value.items()}


@dataclass(frozen=True)
class Choice:
    """One of a few names."""

    word: ClassVar[str] = "NAME"
    names: Sequence[str]

    @property
    def allowed(self) -> str:
        return ", ".join(self.names)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.names)}

    def read(self, raw: Any) -> str:
        if raw not in self.names:
            raise ValueError
        return str(raw)


@dataclass(frozen=True)
class TextList:
    """A list of texts: arguments for a command."""

    word: ClassVar[str] = "TEXT"
    allowed: str = "a list of texts"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}}

    def read(self, raw: Any) -> tuple[str, ...]:
        if not isinstance(raw, list):
            raise ValueError
        return tuple(Text().read(item) for item in raw)


@dataclass(frozen=True)
class Words(TextList):
    """A command: a program and its arguments."""

    allowed: str = 'a list such as ["my-agent", "acp"]: a program, then its arguments'

    @property
    def schema(self) -> dict[str, Any]:
        return super().schema | {"minItems": 1}

    def read(self, raw: Any) -> tuple[str, ...]:
        words = super().read(raw)
        if not words or not words[0].strip():
            raise ValueError
        return words


@dataclass(frozen=True)
class Variables:
    """Environment variables."""

    word: ClassVar[str] = "TEXT"
    allowed: str = 'an object such as {"KEY": "value"}: names of letters, digits and _, each with a text'

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "propertyNames": {"pattern": f"^{VARIABLE_PATTERN}$"},
            "additionalProperties": {"type": "string"},
        }

    def read(self, raw: Any) -> dict[str, str]:
        if not isinstance(raw, dict) or not all(map(is_variable, raw)):
            raise ValueError
        return {name: Text().read(value) for name, value in raw.items()}


@dataclass(frozen=True)
class Choices:
    """Some of a few names: a list, or a text with commas between them."""

    word: ClassVar[str] = "TEXT"
    names: Sequence[str]

    @property
    def allowed(self) -> str:
        return f"some of {', '.join(self.names)}, as a list or with commas between them"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "enum": list(self.names)}}

    def read(self, raw: Any) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [part.strip() for part in raw.split(",") if part.strip()]
        chosen = TextList().read(raw)
        if not set(chosen) <= set(self.names):
            raise ValueError
        return chosen


@dataclass(frozen=True)
class Globs(TextList):
    """Patterns of files in the project: a list, or a text with commas or line ends between them."""

    word: ClassVar[str] = "GLOBS"
    allowed: str = (
        "paths or globs relative to the project, such as tests/**, as a list or with commas between them; "
        "{a,b} and a ! in front have no meaning"
    )

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": _GLOB}}

    def read(self, raw: Any) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [part.strip() for part in re.split(r"[,\n]", raw) if part.strip()]
        globs = super().read(raw)
        if not all(re.search(_GLOB, glob) and _matches_something(glob) for glob in globs):
            raise ValueError
        return globs


@dataclass(frozen=True)
class Paths(TextList):
    """Paths of the machine: a list, or a text with commas or line ends between them."""

    word: ClassVar[str] = "PATHS"
    allowed: str = (
        "paths, as a list or with commas between them; they may begin with ~/, or be relative to the work tree"
    )

    def read(self, raw: Any) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [part.strip() for part in re.split(r"[,\n]", raw) if part.strip()]
        paths = super().read(raw)
        if not all(path.strip("/") and path.isprintable() for path in paths):
            raise ValueError
        return paths


@dataclass(frozen=True)
class Domains(TextList):
    """Hosts that a sandbox lets its program reach: a list, or a text with commas or line ends between them."""

    word: ClassVar[str] = "HOSTS"
    allowed: str = (
        "hosts such as api.example.com, *.example.com, example.com:8443 or 127.0.0.1:8080, as a list or with commas "
        "between them; an address of this machine needs a port"
    )

    def read(self, raw: Any) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [part.strip() for part in re.split(r"[,\n]", raw) if part.strip()]
        domains = super().read(raw)
        AllowList.parse(domains)
        return domains


@dataclass(frozen=True)
class VariableNames(TextList):
    """Names of variables, or patterns of such names: a list, or a text with commas or line ends between them."""

    word: ClassVar[str] = "NAMES"
    allowed: str = "names of variables, as a list or with commas between them; * stands for any letters"

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string", "pattern": _VARIABLE_NAMES}}

    def read(self, raw: Any) -> tuple[str, ...]:
        if isinstance(raw, str):
            raw = [part.strip() for part in re.split(r"[,\n]", raw) if part.strip()]
        names = super().read(raw)
        if not all(re.search(_VARIABLE_NAMES, name) for name in names):
            raise ValueError
        return names


def _matches_something(glob: str) -> bool:
    """Whether a glob can mean what it looks like: `!` in front and `{a,b}` have no meaning, `[z-a]` matches nothing."""
    sets = [found.lstrip("!^") for found in re.findall(r"\[([^]]+)\]", glob)]
    ranges = [pair for found in sets for pair in re.findall("(.)-(.)", found, re.DOTALL)]
    braces = "{" in glob and ("," in glob or "}" not in glob)
    return not glob.startswith("!") and not braces and all(sets) and all(low <= high for low, high in ranges)


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that has no other keys."""
    return {"type": "object", "properties": properties, "additionalProperties": False}
