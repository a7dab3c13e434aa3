"""Git worktrees of runs: made, found from the user's checkout, merged and removed."""
