"""How a command reaches a gateway or an agent: places, requests, recipients, pages."""
