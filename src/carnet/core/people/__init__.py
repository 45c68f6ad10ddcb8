"""Who calls and what shows it: addresses, identities, delegations, proofs, skills and secrets."""
