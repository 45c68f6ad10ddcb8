"""SHOWS: the pages for people, made of the same data as the API and the command line."""
