"""The statements about conversations and their messages, in what both databases understand."""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from typing import Final

from carnet.stores.conversations.rows import CONVERSATION_COLUMNS, MESSAGE_COLUMNS
from carnet.stores.turn.row import OF_OURS, SELECT_OURS

OWN: Final = "id = ? AND owner = ? AND deleted IS NULL"
NOT_SENT: Final = "NOT EXISTS (SELECT 1 FROM message WHERE owner = ? AND client_hash = ?)"
COUNTED: Final = (
    "(SELECT COUNT(*) FROM conversation WHERE owner = ? AND deleted IS NULL AND archived IS NULL)"
    " + (SELECT COUNT(*) FROM conversation"
    " WHERE owner = ? AND deleted IS NULL AND archived IS NOT NULL)"
)
NEW: Final = (
    "INSERT INTO conversation (id, owner, agent, title, cause, created, updated, answering)"
    f" SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE {COUNTED} < ? AND {NOT_SENT}"
)
TAKE: Final = (
    "UPDATE conversation SET answering = ?, updated = ?, agent = ?, archived = NULL"
    f" WHERE {OWN} AND answering IS NULL AND size < ?"
)
# An answer that has become whole meanwhile stands: who wanted it tried again was late.
NOT_WHOLE: Final = "NOT EXISTS (SELECT 1 FROM message WHERE id = ? AND state = 'whole')"
SAY: Final = (
    "INSERT INTO message (id, conversation, owner, parent, role, parts, metadata, state,"
    " client_id, client_hash, digest, created)"
    " SELECT ?, c.n, c.owner, {parent}, 'user', ?, ?, 'unanswered', ?, ?, ?, ?"
    " FROM conversation c WHERE c.id = ? AND c.owner = ? AND c.answering = ?"
    " ON CONFLICT DO NOTHING"
)
PLACE: Final = (
    "INSERT INTO message (id, conversation, owner, parent, role, author, parts, state, run, turn,"
    " created) SELECT ?, m.conversation, m.owner, m.n, 'assistant', ?, ?, 'unanswered', ?, ?, ?"
    " FROM message m JOIN conversation c ON c.n = m.conversation"
    " WHERE m.id = ? AND m.owner = ? AND m.role = 'user' AND c.answering = ?"
    " ON CONFLICT DO NOTHING"
)
ANEW: Final = (
    "UPDATE message SET state = 'unanswered', author = ?, run = ?, turn = ?, waits = 0, code = NULL"
    " WHERE id = ? AND owner = ? AND role = 'assistant'"
    f" AND EXISTS (SELECT 1 FROM conversation WHERE {OWN} AND answering = ?)"
)
ASKED: Final = (
    "UPDATE message SET state = ? WHERE n = (SELECT parent FROM message WHERE id = ? AND owner = ?)"
    " AND role = 'user' AND state <> 'deleted'"
)
HEAD: Final = (
    "UPDATE conversation SET head = (SELECT n FROM message WHERE id = ?), size = size + ?"
    f" WHERE {OWN} AND answering = ? AND EXISTS (SELECT 1 FROM message WHERE id = ?)"
)
# What another client has said at the same moment under the same id was first.
LET_GO: Final = (
    "UPDATE conversation SET answering = NULL WHERE id = ? AND answering = ?"
    " AND NOT EXISTS (SELECT 1 FROM message WHERE id = ?)"
)
UNBORN: Final = "DELETE FROM conversation WHERE id = ? AND head IS NULL AND answering IS NULL"
# Who settles an answer and who tries it again do so one after the other: the second sees what the
# first has done.
LOCK: Final = "UPDATE message SET waits = waits WHERE id = ? AND owner = ?"
SETTLE: Final = (
    "UPDATE conversation SET updated = ?, unread = unread + CASE WHEN EXISTS (SELECT 1 FROM message"
    " WHERE id = ? AND ended IS NOT NULL AND state = ? AND waits = ?) THEN 0 ELSE ? END,"
    " answering = CASE WHEN answering = ? THEN NULL ELSE answering END, "
    + ", ".join(
        f"{name} = {name} + ? - COALESCE((SELECT {name} FROM message WHERE id = ?), 0)"
        for name in ("tokens_in", "tokens_out", "cost")
    )
    + " WHERE n = (SELECT conversation FROM message WHERE id = ? AND owner = ?)"
    " AND deleted IS NULL"
)
ANSWERED: Final = (
    "UPDATE message SET parts = ?, state = ?, waits = ?, code = ?, tokens_in = ?, tokens_out = ?,"
    " cost = ?, ended = ? WHERE id = ? AND owner = ? AND state <> 'deleted'"
)
# What others have said who were mentioned, each after the one before.
RELAYED: Final = (
    "INSERT INTO message (id, conversation, owner, parent, role, author, parts, state, run, code,"
    " created, ended) SELECT ?, m.conversation, m.owner, m.n, 'assistant', ?, ?, ?, m.run, ?, ?, ?"
    " FROM message m WHERE m.id = ? AND m.owner = ? AND m.state <> 'deleted'"
    " ON CONFLICT (id) DO UPDATE SET author = excluded.author, parts = excluded.parts,"
    " state = excluded.state, code = excluded.code, ended = excluded.ended"
    " WHERE message.state <> 'deleted' AND message.owner = excluded.owner"
)
RELAYED_HEAD: Final = (
    "UPDATE conversation SET head = (SELECT n FROM message WHERE id = ?), size = size + 1"
    " WHERE deleted IS NULL AND n = (SELECT conversation FROM message WHERE id = ? AND owner = ?)"
    " AND head = (SELECT n FROM message WHERE id = ?)"
)
RELEASE: Final = "UPDATE conversation SET answering = NULL WHERE owner = ? AND n = ({})".format(
    "SELECT conversation FROM message WHERE id = ? AND owner = ?"
)
CODE: Final = "UPDATE message SET code = ? WHERE id = ? AND owner = ? AND state <> 'deleted'"

FIND: Final = f"SELECT {CONVERSATION_COLUMNS} FROM conversation c WHERE c.id = ? AND c.owner = ?"
BOTH: Final = (
    f"SELECT {CONVERSATION_COLUMNS}, {MESSAGE_COLUMNS} FROM message m"
    " JOIN conversation c ON c.n = m.conversation WHERE m.id = ? AND m.owner = ?"
)
SENT: Final = (
    "SELECT m.id, m.digest, m.state FROM message m WHERE m.owner = ? AND m.client_hash = ?"
)
FIRST: Final = (
    f"SELECT {MESSAGE_COLUMNS} FROM message m WHERE m.conversation = ? AND m.parent = ?"
    " AND m.role = 'assistant' ORDER BY m.n LIMIT 1"
)
MESSAGE: Final = f"SELECT {MESSAGE_COLUMNS} FROM message m WHERE m.id = ? AND m.conversation = ?"
# How many there are and how long they are is known before they are read.
BRANCH: Final = (
    "WITH RECURSIVE path (n, parent, size, place) AS ("
    " SELECT n, parent, LENGTH(parts), 1 FROM message WHERE n = ? AND conversation = ?"
    " UNION ALL SELECT m.n, m.parent, LENGTH(m.parts), path.place + 1"
    " FROM path JOIN message m ON m.n = path.parent WHERE path.place < ?)"
    " SELECT n, size FROM path ORDER BY place"
)
NUMBERED: Final = f"SELECT {MESSAGE_COLUMNS} FROM message m WHERE m.n IN ({{}})"
BESIDE: Final = (
    "SELECT parent, id FROM message WHERE conversation = ? AND parent IN ({}) ORDER BY n"
)
FIRST_ONES: Final = (
    "SELECT parent, id FROM message WHERE conversation = ? AND parent IS NULL ORDER BY n"
)
TURN: Final = f"{SELECT_OURS} = ? AND t.turn = ? AND {{}} ORDER BY t.n DESC LIMIT 1"
# Where an answer is given that is not written down yet.
ANSWER_PLACE: Final = (
    "SELECT c.id, c.cause, q.parent FROM message m JOIN conversation c ON c.n = m.conversation"
    " JOIN message q ON q.n = m.parent WHERE m.id = ? AND c.owner = ? AND c.deleted IS NULL"
    " AND (c.answering = m.id OR m.waits = 1)"
)
# The turn of an answer, of the same owner; another's may have the same names.
_OF: Final = (
    f"SELECT 1 {OF_OURS} = m.run AND t.turn = m.turn"
    " AND (m.owner = 'person:' || t.person OR (t.person IS NULL AND t.actor = m.owner))"
)
_ENDED: Final = "t.state IN ('done', 'failed', 'unknown')"
# Answers that nobody gives any more: begun long enough ago, without a turn or with one that has
# ended, or waits, long enough ago.
GIVEN: Final = (
    f"SELECT c.n, c.owner, c.id, c.updated, {MESSAGE_COLUMNS} FROM conversation c"
    " JOIN message m ON m.id = c.answering WHERE c.answering IS NOT NULL AND c.n > ?"
    f" AND c.updated <= ? AND (NOT EXISTS ({_OF}) OR EXISTS ({_OF}"
    f" AND ({_ENDED} OR t.state = 'waiting') AND (t.ended IS NULL OR t.ended <= ?)))"
    " ORDER BY c.n LIMIT ?"
)
# Answers that waited, of so many that wait, and whose turns have ended since.
LAST_WAITING: Final = (
    "SELECT COUNT(*), MAX(looked.n) FROM"
    " (SELECT n FROM message WHERE waits = 1 AND n > ? ORDER BY n LIMIT ?) AS looked"
)
WAITING: Final = (
    f"SELECT m.n, c.owner, c.id, c.updated, {MESSAGE_COLUMNS} FROM message m"
    " JOIN conversation c ON c.n = m.conversation WHERE m.waits = 1 AND m.n > ? AND m.n <= ?"
    f" AND EXISTS ({_OF} AND {_ENDED}) ORDER BY m.n LIMIT ?"
)
