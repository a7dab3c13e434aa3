"""Recording: the state file, the journal, the response files, the lock, notifications."""
