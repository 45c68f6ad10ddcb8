"""What begins conversations while their owners are away: due schedules, events of hooks."""
