"""An agent that follows a script: a real program in a real terminal, for the demo, the tests and the benchmarks."""
