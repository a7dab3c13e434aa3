"""Many runs at once, and what they cost."""
