"""Settings: the one table, and how its values are found. No other place reads a setting."""

from quintet.config.load import Loaded, load_settings, shown
from quintet.config.table import TABLE, Agent, Settings

__all__ = ["TABLE", "Agent", "Loaded", "Settings", "load_settings", "shown"]
