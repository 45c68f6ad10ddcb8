"""`carnet ledger`, `budget` and `vouchers`: what calls cost, what they may, and who pays."""
