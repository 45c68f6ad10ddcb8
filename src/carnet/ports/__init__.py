"""Every Protocol the package depends on, by noun."""
