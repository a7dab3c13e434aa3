"""Which variables a program in a sandbox gets: those that are named here, and no others."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final

ALLOWED: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "CI"),
    *("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR*", "EDITOR", "VISUAL", "PAGER"),
    *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"),
    *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "JAVA_HOME", "GOROOT", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"),
    *("NVM_DIR", "NVM_BIN", "PYENV_ROOT", "PYENV_VERSION", "VOLTA_HOME", "BUN_INSTALL", "DENO_INSTALL", "ASDF_*"),
    *("PYTHONPATH", "LD_LIBRARY_PATH", "GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_CONFIG_NOSYSTEM"),
    *("QUINTET_TERMINAL", "QUINTET_SCENARIO"),
)
"""locale, terminal, proxies, certificates, toolchains and git's identity; `*` stands for any letters"""


def passed_on(env: Mapping[str, str], more: Iterable[str]) -> dict[str, str]:
    """The variables that are allowed to everybody, and those that more names stand for."""
    patterns = (*ALLOWED, *more)
    return {name: value for name, value in env.items() if any(fnmatchcase(name, one) for one in patterns)}
