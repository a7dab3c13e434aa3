"""The runs of a project as people look at them: folded from journals, with figures, changes and advice."""
