"""Who is calling, for whom, and how far that caller is trusted."""
