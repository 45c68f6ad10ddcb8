"""What went over the wire for a turn, as far as it is kept: what came, and what was sent."""
