"""tmux: connections, servers, processes."""
