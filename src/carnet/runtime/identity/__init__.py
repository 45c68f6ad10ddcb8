"""Who we are to others: credentials, access tokens and evidence, made and verified."""
