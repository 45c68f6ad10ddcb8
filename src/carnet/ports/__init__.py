"""Every Protocol the house depends on, by noun."""
