"""The pages of runs: the list, and one run as a waterfall, a chain, a transcript and a bill."""
