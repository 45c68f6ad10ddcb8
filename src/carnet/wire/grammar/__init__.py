"""The grammars that formats are written in: headers, JSON, structured fields, event streams."""
