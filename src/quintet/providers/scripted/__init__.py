"""An agent that follows a script: a real program in a real terminal, for the demo, the tests and the benchmarks."""

from typing import Final

from quintet.providers.registration import Registration

SCRIPTED: Final = Registration("scripted", has_commands=True)
SCENARIO_VARIABLE: Final = "QUINTET_SCENARIO"
"""the environment variable that names the script"""
