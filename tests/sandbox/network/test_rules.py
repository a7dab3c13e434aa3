"""Which hosts an allow-list lets through."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.sandbox.network.rules import AllowList, entry_for, is_public, normalise_host, parse_rule, split_authority

LIST = AllowList.parse(
    [
        "api.example.com",
        "*.example.org",
        "models.test:8443",
        "127.0.0.1:8080",
        "10.0.0.5",
        "localhost:9000",
        "[fd00::7]:80",
    ]
)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("api.example.com", 443), ("api.example.com", 8080), ("API.Example.COM", 443), ("api.example.com.", 443),
        ("a.example.org", 443), ("a.b.example.org", 443), ("models.test", 8443), ("127.0.0.1", 8080),
        ("::ffff:127.0.0.1", 8080), ("10.0.0.5", 22), ("localhost", 9000), ("fd00:0::7", 80),
    ],
)  # fmt: skip
def test_a_host_on_the_list_is_allowed(host: str, port: int) -> None:
    assert LIST.allows(normalise_host(host), port)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("example.com", 443), ("xapi.example.com", 443), ("api.example.com.evil.test", 443), ("example.org", 443),
        ("badexample.org", 443), ("models.test", 443), ("127.0.0.1", 8081), ("127.0.0.2", 8080), ("10.0.0.6", 80),
        ("localhost", 80), ("::1", 8080), ("fd00::7", 443), ("93.184.216.34", 443), ("a.localhost", 9000),
    ],
)  # fmt: skip
def test_every_other_host_is_refused(host: str, port: int) -> None:
    assert not LIST.allows(normalise_host(host), port)


@pytest.mark.parametrize(
    "text",
    [
        "", ".", "a..b", "-a.test", "a b", "a\n.test", "a%00.test", "user@host", "host/path", "*", "a*.test",
        "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "1.2.3.4.5", "fe80::1%lo", "::1::", "a" * 64 + ".test",
        ".".join(["a" * 60] * 5), "\udcff.test",
    ],
)  # fmt: skip
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - several modules say why
        normalise_host(text)


def test_a_name_has_one_spelling() -> None:
    assert normalise_host("BÜCHER.example") == "xn--bcher-kva.example"
    assert normalise_host("Example.COM.") == "example.com"
    assert normalise_host("0:0::1") == "::1"


@pytest.mark.parametrize(
    "text", ["https://a.example", "a.example/x", "*.com", "*", "*.1.2.3.4", "127.0.0.1", "localhost", "::1", "a:0",
             "a:65536", "a:x", "a:", "[::1", "[a]:80", "[::1]x"],
)  # fmt: skip
def test_an_entry_that_means_nothing_or_too_much_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - several modules say why
        parse_rule(text)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254",  # noqa: S104
        "100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255", "240.0.0.1", "::", "::1",
        "::ffff:10.0.0.1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2002:7f00:1::", "64:ff9b::a9fe:a9fe",
        "::ffff:169.254.169.254", "2001:db8::1",
        "fec0::1", "::7f00:1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_of_the_internet_has_to_be_named(address: str) -> None:
    parsed = ipaddress.ip_address(address)
    assert not AllowList.parse(["evil.test"]).allows_address(parsed, 80)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822"])
def test_a_public_address_of_an_allowed_name_is_reached(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_a_named_address_is_reached_at_its_port() -> None:
    assert LIST.allows_address(ipaddress.ip_address("::ffff:127.0.0.1"), 8080)
    assert LIST.allows_address(ipaddress.ip_address("127.0.0.1"), 9000), "localhost stands for it"
    assert not LIST.allows_address(ipaddress.ip_address("127.0.0.1"), 9001)


def test_the_servers_of_the_machine_itself_are_listed() -> None:
    assert LIST.local_servers == (("127.0.0.1", 8080), ("localhost", 9000))


def test_an_entry_can_be_read_again() -> None:
    for host, port in (("a.test", 80), ("::1", 8080), ("1.2.3.4", 1)):
        assert split_authority(entry_for(host, port)) == (host, port)


@given(st.text(max_size=40))
def test_any_text_is_a_host_or_refused(text: str) -> None:
    try:
        host = normalise_host(text)
    except ValueError:
        return
    assert normalise_host(host) == host
    assert host.isascii()
    assert not set(host) & set(" \r\n\0/@%")
