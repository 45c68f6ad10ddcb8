"""Whom an operator believes: identities, hosts of callers, who may call, and what is denied."""
