"""A driver without a gateway, put together."""
