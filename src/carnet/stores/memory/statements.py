"""The SQL of memory. `memory` is one file of a person at an agent, `memory_version` what it said.

Law 1. Every text asks for the person and the agent; there is none that finds a file by its path or
       its number alone.
Law 2. Who writes, deletes or erases locks the row of the person first (`LOCK`): what is counted and
       compared then is what there is, on both databases.
Law 3. The version that stands is the greatest of which something is left.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from typing import Final

LOCK: Final = "SELECT n FROM person WHERE n = ?{}"
IS_LIVE: Final = "SELECT 1 FROM person WHERE n = ? AND ended IS NULL"

_OF: Final = "m.person = ? AND m.agent = ?"
_STANDS: Final = (
    "(SELECT MAX(s.version) FROM memory_version s WHERE s.memory = m.n AND s.erased IS NULL)"
)
_CURRENT: Final = (
    f"FROM memory m JOIN memory_version v ON v.memory = m.n AND v.version = {_STANDS} WHERE {_OF}"
)

FOLDERS: Final = (
    "SELECT m.agent, COUNT(*), CAST(SUM(v.size) AS BIGINT) FROM memory m"
    f" JOIN memory_version v ON v.memory = m.n AND v.version = {_STANDS}"
    " WHERE m.person = ? GROUP BY m.agent ORDER BY m.agent"
)
FILES: Final = f"SELECT m.path, v.version, v.size, v.at {_CURRENT} ORDER BY m.path"
TEXTS: Final = f"SELECT m.path, v.version, v.data, v.at {_CURRENT} ORDER BY m.path"
TEXT: Final = f"SELECT v.version, v.data, v.at {_CURRENT} AND m.path = ?"
TEXT_AT: Final = (
    "SELECT v.version, v.data, v.at FROM memory m JOIN memory_version v ON v.memory = m.n"
    f" WHERE {_OF} AND m.path = ? AND v.version = ? AND v.erased IS NULL"
)
VERSIONS: Final = (
    "SELECT v.version, v.size, v.at, v.origin, c.id, r.id, t.turn, v.turn, v.erased"
    " FROM memory m JOIN memory_version v ON v.memory = m.n"
    " LEFT JOIN conversation c ON c.n = v.conversation LEFT JOIN turn t ON t.n = v.turn"
    f" LEFT JOIN run r ON r.n = t.run WHERE {_OF} AND m.path = ? ORDER BY v.version DESC"
)

# A file that is not there yet: not one too many, none that is it but for its capitals, no folder
# of it that is a file, no file of it that would be a folder.
ADD: Final = (
    "INSERT INTO memory (person, agent, path, folded) SELECT ?, ?, ?, ?"
    f" WHERE EXISTS ({IS_LIVE})"
    f" AND (SELECT COUNT(*) FROM memory m WHERE {_OF}) < ?"
    f" AND NOT EXISTS (SELECT 1 FROM memory m WHERE {_OF} AND (m.folded IN ({{}})"
    " OR substr(m.folded, 1, ?) = ?)) ON CONFLICT DO NOTHING"
)
_CONVERSATION: Final = "(SELECT c.n FROM conversation c WHERE c.id = ? AND c.owner = ?)"
_OTHERS: Final = (
    "(SELECT COALESCE(CAST(SUM(o.size) AS BIGINT), 0) FROM memory f"
    " JOIN memory_version o ON o.memory = f.n AND o.version = (SELECT MAX(s.version)"
    " FROM memory_version s WHERE s.memory = f.n AND s.erased IS NULL)"
    " WHERE f.person = m.person AND f.agent = m.agent AND f.n <> m.n)"
)
WRITE: Final = (
    "INSERT INTO memory_version (memory, version, data, size, conversation, turn, at, origin)"
    " SELECT m.n,"
    " COALESCE((SELECT MAX(a.version) FROM memory_version a WHERE a.memory = m.n), 0) + 1,"
    f" ?, ?, {_CONVERSATION}, ?, ?, ? FROM memory m WHERE {_OF} AND m.path = ?"
    f" AND EXISTS ({IS_LIVE})"
    f" AND (? = 1 OR NOT EXISTS (SELECT 1 FROM memory_version v WHERE v.memory = m.n"
    f" AND v.version = {_STANDS} AND v.data = ?))"
    f" AND (? = 1 OR COALESCE({_STANDS}, 0) = ?)"
    f" AND {_OTHERS} <= ?"
)
_THIS: Final = f"(SELECT m.n FROM memory m WHERE {_OF} AND m.path = ?)"
THIN_OUT: Final = (
    f"DELETE FROM memory_version WHERE memory = {_THIS} AND version NOT IN"
    f" (SELECT k.version FROM memory_version k WHERE k.memory = {_THIS}"
    " ORDER BY k.version DESC LIMIT ?)"
)
# Of what no longer stands the newest, as many as there is room for.
FORGET_FORMER: Final = (
    "DELETE FROM memory_version WHERE (memory, version) IN (SELECT x.memory, x.version FROM"
    " (SELECT v.memory, v.version, SUM(v.size)"
    " OVER (ORDER BY v.at DESC, v.memory DESC, v.version DESC) AS total"
    f" FROM memory m JOIN memory_version v ON v.memory = m.n WHERE {_OF}"
    f" AND v.version < {_STANDS}) x WHERE x.total > ?)"
)

_ALL: Final = f"(SELECT m.n FROM memory m WHERE {_OF})"
DELETE_FILE: Final = f"DELETE FROM memory_version WHERE memory = {_THIS}"
DELETE_ALL: Final = f"DELETE FROM memory_version WHERE memory IN {_ALL}"
ERASE_VERSION: Final = (
    "UPDATE memory_version SET data = NULL, size = 0, erased = ?"
    f" WHERE memory = {_THIS} AND version = ? AND erased IS NULL"
)
_HERS: Final = "(SELECT m.n FROM memory m WHERE m.person = ?)"
# What was written in turns that are known to be of a conversation.
ATTACH: Final = (
    f"UPDATE memory_version SET conversation = ? WHERE memory IN {_HERS}"
    " AND conversation IS NULL AND turn IN ({})"
)
# What a conversation wrote, and what has brought its words back since.
ERASE: Final = (
    "UPDATE memory_version SET data = NULL, size = 0, erased = ? WHERE erased IS NULL"
    f" AND memory IN {_HERS} AND (conversation = ? OR (memory, origin) IN"
    " (SELECT w.memory, w.version FROM memory_version w WHERE w.conversation = ?))"
)
# Files of which nothing is left at all are no files.
FORGET_ERASED: Final = (
    f"DELETE FROM memory_version WHERE memory IN {_HERS} AND NOT EXISTS (SELECT 1 FROM"
    " memory_version l WHERE l.memory = memory_version.memory AND l.erased IS NULL)"
)
FORGET_EMPTY: Final = (
    "DELETE FROM memory WHERE person = ? AND NOT EXISTS"
    " (SELECT 1 FROM memory_version v WHERE v.memory = memory.n)"
)
WRITTEN_IN: Final = (
    "SELECT m.agent, m.path, v.version, CASE WHEN v.conversation = ? OR EXISTS (SELECT 1 FROM"
    " memory_version w WHERE w.memory = m.n AND w.version = v.origin AND w.conversation = ?)"
    " THEN 1 ELSE 0 END"
    " FROM memory m JOIN memory_version v ON v.memory = m.n"
    " WHERE m.person = ? AND v.erased IS NULL AND EXISTS (SELECT 1 FROM memory_version e"
    " WHERE e.memory = m.n AND e.conversation = ? AND e.erased IS NULL)"
    " ORDER BY m.agent, m.path, v.version"
)
