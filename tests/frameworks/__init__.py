"""Real frameworks on the CPU, recorded: what they compute stays the same, and what is recorded is right."""
