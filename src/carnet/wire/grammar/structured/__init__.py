"""Structured fields (RFC 9651): the grammar of the headers that carry signatures and digests.

It knows no field by name: who asks says whether a value is an item, a list or a dictionary.

Law 1. `read_x(write_x(value)) == value` for every value that can be written.
Law 2. Whatever the text, a reader returns a value or raises `StructuredInvalid`, in linear time.
Law 3. Base64 has one spelling: padded, no other alphabet, no bits left over. The RFC lets a reader
       be generous there; two spellings of one signature are one too many for us.
Law 4. A key that stands twice is overridden by its last value, as the RFC has it, unless the reader
       asks for `unique` keys: then it is refused.
"""

from carnet.wire.grammar.structured.reader import (
    read_base64,
    read_dictionary,
    read_entries,
    read_item,
    read_list,
)
from carnet.wire.grammar.structured.values import (
    MAX_INTEGER,
    Bare,
    Date,
    Display,
    InnerList,
    Item,
    Member,
    StructuredInvalid,
    StructuredToken,
)
from carnet.wire.grammar.structured.writer import (
    write_bare,
    write_bytes,
    write_dictionary,
    write_item,
    write_list,
    write_member,
    write_string,
)

__all__ = [
    "MAX_INTEGER",
    "Bare",
    "Date",
    "Display",
    "InnerList",
    "Item",
    "Member",
    "StructuredInvalid",
    "StructuredToken",
    "read_base64",
    "read_dictionary",
    "read_entries",
    "read_item",
    "read_list",
    "write_bare",
    "write_bytes",
    "write_dictionary",
    "write_item",
    "write_list",
    "write_member",
    "write_string",
]
