"""Who calls, in the words of others: credentials, access tokens, and what is vouched for."""
