"""A trivial program that looks like Codex to whoever reads its screen: it draws a composer and answers every line."""

import os
import sys
import termios
import tty

HEADER = "╭──────────────────────────╮\r\n│ >_ OpenAI Codex (v0.149.0) │\r\n╰──────────────────────────╯\r\n\r\n"
COMPOSER = "› \r\n\r\n  gpt-5-codex · ~/project · ? for shortcuts · 100% context left"
UP = "\x1b[2A\r\x1b[2C"


def main() -> None:
    if "--help" in sys.argv or "--version" in sys.argv:
        print("codex-cli 0.149.0\n  --no-alt-screen")
        return
    saved = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        _serve()
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, saved)


def _serve() -> None:
    out = sys.stdout
    out.write("\x1b[?2004h" + HEADER + COMPOSER + UP)
    out.flush()
    draft = b""
    while data := os.read(0, 65536):
        draft += data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"")
        text, entered, _ = draft.partition(b"\r")
        line = text.decode(errors="replace").strip()
        out.write(f"\r\x1b[J› {line[:60]}")
        if entered:
            if line in {"/quit", "/exit"}:
                return
            out.write(f"\r\n\r\n• {line[:60]}\r\n\r\n{COMPOSER}{UP}")
            draft = b""
        else:
            out.write(f"\x1b7\r\n\r\n{COMPOSER.rpartition(chr(10))[2]}\x1b8")
        out.flush()


if __name__ == "__main__":
    main()
