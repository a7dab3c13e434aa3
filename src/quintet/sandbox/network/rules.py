"""Which hosts a program in a sandbox may reach. Pure: no name is resolved here."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

LOCALHOST: Final = "localhost"
MAX_PORT: Final = 65_535
_LONGEST_NAME: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NOT_PUBLIC: Final = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "fec0::/10", "::/96"))
)
"""what some releases of Python take for public: protocol assignments, Azure's service for its machines, old ranges"""


@dataclass(frozen=True)
class Rule:
    """One entry of an allow-list: a name, `*.name` or an address, each with or without a port."""

    host: str
    port: int | None = None
    is_suffix: bool = False
    """whether the rule means all names below the host and not the host itself"""

    def covers(self, host: str, port: int) -> bool:
        """Whether the rule names a host that is already normalised, at a port."""
        if self.port not in (None, port):
            return False
        return host.endswith(f".{self.host}") if self.is_suffix else host == self.host

    def covers_address(self, address: Address, port: int) -> bool:
        """Whether the rule names an address; `localhost` stands for those of the machine itself."""
        is_local = self.host == LOCALHOST and self.port == port and address.is_loopback
        return is_local or self.covers(str(address), port)


def parse_rule(text: str) -> Rule:
    """Parse one entry of an allow-list, or raise ValueError."""
    text = text.strip()
    is_suffix = text.startswith("*.")
    host, port = split_authority(text.removeprefix("*."))
    host = normalise_host(host)
    address = _address(host)
    if is_suffix and (address or "." not in host):
        raise ValueError(f"{text}: *. needs a name of two parts at least")
    if port is None and (host == LOCALHOST or (address and address.is_loopback)):
        raise ValueError(f"{text}: an address of this machine needs a port, as 127.0.0.1:8080")
    return Rule(host, port, is_suffix)


def split_authority(text: str) -> tuple[str, int | None]:
    """Split `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address; ValueError for anything else."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in host or rest[:1] not in ("", ":"):
            raise ValueError(f"{text}: is not a host")
        return host, _port(rest[1:]) if rest else None
    if text.count(":") > 1:
        return text, None
    host, colon, port = text.partition(":")
    return host, _port(port) if colon else None


def _port(text: str) -> int:
    if not _PORT.fullmatch(text) or not 0 < int(text) <= MAX_PORT:
        raise ValueError(f"{text}: is not a port")
    return int(text)


def normalise_host(text: str) -> str:
    """Return the one spelling of a name or an address, or raise ValueError.

    Spellings of an address that only some libraries understand (`127.1`, `0x7f000001`) are refused.
    """
    if ":" in text:
        return str(unwrap(ipaddress.IPv6Address(text))) if "%" not in text else _refuse(text)
    name = text if text.isascii() else text.encode("idna").decode("ascii")  # its UnicodeError is a ValueError
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return str(ipaddress.IPv4Address(name))
    is_name = len(name) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, labels))
    return name if is_name else _refuse(text)


def _refuse(text: str) -> str:
    raise ValueError(f"{text[:_LONGEST_NAME]!r}: is not a host")


def _address(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def unwrap(address: Address) -> Address:
    """The IPv4 address that an IPv6 address of the kind `::ffff:1.2.3.4` stands for."""
    return (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address


def is_public(address: Address) -> bool:
    """Whether an address belongs to the internet, also as what tunnels and translators make of it."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = [address.sixtofour, *(address.teredo or ())]
        inner += [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)] if address in _NAT64 else []
        if not all(is_public(one) for one in inner if one):
            return False
    is_kept_apart = any(address in network for network in _NOT_PUBLIC)
    return address.is_global and not address.is_multicast and not is_kept_apart


@dataclass(frozen=True)
class AllowList:
    """The hosts that a program may reach; all others are refused."""

    rules: tuple[Rule, ...]

    @classmethod
    def parse(cls, domains: Iterable[str]) -> "AllowList":
        """Parse all entries of a list, or raise ValueError."""
        return cls(tuple(map(parse_rule, domains)))

    def allows(self, host: str, port: int) -> bool:
        """Whether a normalised host may be asked for. A name that may not is not even resolved."""
        return any(rule.covers(host, port) for rule in self.rules)

    def allows_address(self, address: Address, port: int) -> bool:
        """Whether a connection may go to the address of an allowed host: a public one, or one that is named itself."""
        address = unwrap(address)
        return is_public(address) or any(rule.covers_address(address, port) for rule in self.rules)

    @cached_property
    def local_servers(self) -> tuple[tuple[str, int], ...]:
        """The servers on this machine, each with its port. Programs ask those directly and never a proxy."""
        found = ((rule.host, rule.port, _address(rule.host)) for rule in self.rules if rule.port)
        return tuple(
            (host, port)
            for host, port, address in found
            if port and (host == LOCALHOST or (address and address.is_loopback))
        )


def entry_for(host: str, port: int) -> str:
    """The entry that allows a host."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
