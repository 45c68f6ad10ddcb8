"""The tools of an agent loop: what models may have done, by functions of the operator's."""
