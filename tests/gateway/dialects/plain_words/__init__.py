"""A dialect that no file of the package knows: plain words, one a line.

POST /words            "TO echo" and what is said         -> "SAID ..." or "NO code", or
                                                             "ASKS state kind message"
POST /words/later      the same, and "TELL url"           -> "TICKET id"
GET  /words/later/ID                                      -> "TICKET id waits|ready|lost"
GET  /words/later                                         -> one line a ticket
POST /words/later/ID/stop
GET  /words/who                                           -> the agents

A peer that is listed with it is called by `POST /words`.
"""

from tests.gateway.dialects.plain_words.dialect import WORDS

__all__ = ["WORDS"]
