"""What decides: roles in, prompts out, replies in, the next step out."""
