-- The named budgets of a token, such as `turns=8 tool_calls=20`.
ALTER TABLE token ADD COLUMN budgets TEXT;
