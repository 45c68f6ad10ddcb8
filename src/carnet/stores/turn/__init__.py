"""A turn as rows: its columns, its moves, the rules of claiming and ending. No database here."""
