"""Running turns: executed, recorded, broadcast to readers, followed from other processes."""
