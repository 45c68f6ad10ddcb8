"""What keeps a store small and alive: recovery, expiry, retention, other gateways."""
