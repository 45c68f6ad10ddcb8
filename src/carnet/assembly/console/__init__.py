"""From settings to the pages for people."""
