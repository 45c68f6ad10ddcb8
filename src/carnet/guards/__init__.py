"""Why a claim may be refused, one reason a file."""
