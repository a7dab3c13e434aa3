"""Settings: the one table, and how its values are found. No other place reads a setting."""

from quintet.config.load import Loaded, find_config, load_settings, settings_as_json
from quintet.config.table import TABLE, Agent, Settings
from quintet.layout import CONFIG_FILE

__all__ = ["CONFIG_FILE", "TABLE", "Agent", "Loaded", "Settings", "find_config", "load_settings", "settings_as_json"]
