"""Work that outlives its request: the worker that runs it, and how far it is."""
