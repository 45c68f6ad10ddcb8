"""How much one caller may have: calls at once, rates, quotas, tasks, and who pays."""
