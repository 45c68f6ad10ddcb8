"""How runs are cancelled over HTTP."""
