"""Everything around a run: setting up a project, beginning a task, finding faults, clearing up."""
