"""The kinds of agents: Python functions, chat completions elsewhere, SAMVAD elsewhere."""
