"""Two tools for a small model."""


def weather(city: str) -> str:
    """Tells the weather in a city."""
    return f"In {city} it is 17 degrees, with rain."


def search(words: str) -> str:
    """Finds pages about something."""
    return f"There are 42 pages about {words}."
