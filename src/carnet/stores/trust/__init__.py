"""The ports of trust over a database: tokens, peers, keys, receipts."""
