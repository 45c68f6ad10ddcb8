"""A person's conversations, to be listed, read, changed and taken along.

Law 1. Each is its owner's: what somebody else asks for is not there, in the same words as what
       never was.
Law 2. A list and a conversation are read a page at a time, by keys: what is added meanwhile moves
       nothing.
Law 3. What leaves in an export is all that is kept of the branch that is shown.
Law 4. What is held of messages for those who read slowly is bounded, as it is of the journal.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from carnet.core.money.amount import format_amount
from carnet.core.people.identity import Caller
from carnet.errors import ConversationNotFound, InvalidRequest, MessageNotFound
from carnet.gateway.conversations.claims import FrontPolicy
from carnet.gateway.conversations.forms import (
    Shown,
    message_page,
    read_mark,
    read_title,
    tools_of,
)
from carnet.guards.readers import Readers
from carnet.http.exchange import Exchange, Row, check_json_body, reply_json
from carnet.ports.calls.conversations import (
    MOST_SEARCHED,
    ConversationFilter,
    Conversations,
    KeptConversation,
    KeptMessage,
)
from carnet.ports.world.clock import Clock
from carnet.wire.grammar import json
from carnet.wire.grammar.query import (
    Query,
    read_flag,
    read_lines,
    read_moment,
    read_query,
    read_word,
)
from carnet.wire.grammar.times import when

MOST_BYTES: Final = 16_384  # of what is changed
PAGE_BYTES: Final = 1024 * 1024  # that a page of messages is counted as
AT_A_TIME: Final = 50  # messages that are read for an export
MOST_LOOKS: Final = 3  # at a conversation that changes while it is read
CHANGES: Final = ("title", "archived", "unread", "head")
FORMS: Final = ("json", "markdown")
TRIGGERS: Final = ("message", "webhook", "schedule")


class ConversationPages:
    """The pages of conversations over HTTP."""

    def __init__(
        self,
        conversations: Conversations,
        policy: FrontPolicy,
        clock: Clock,
        *,
        readers: Readers,
        words: Callable[[str], tuple[str, ...]],
    ) -> None:
        """`readers` bounds what is held of messages; `words` gives those of a search."""
        self._readers = readers
        self._conversations = conversations
        self._policy = policy
        self._clock = clock
        self._words = words

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /conversations."""
        query = read_query(exchange.query.decode("latin-1"))
        page = await self._conversations.list(
            caller.owner,
            self._filter(query),
            limit=read_lines(query),
            before=read_word(query, "before"),
        )
        lines = [self._line(each) for each in page.found]
        await reply_json(exchange, {"conversations": lines, "next": page.following})

    async def show(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /conversations/{id}: the newest messages first, those before `before`."""
        query = read_query(exchange.query.decode("latin-1"))
        limit, before = read_lines(query), read_word(query, "before")
        conversation = await self._find(caller, name)
        # Until its reader has taken it.
        async with self._readers.room(caller.actor.name, PAGE_BYTES):
            if before is None:
                conversation, branch = await self._newest(conversation, caller, limit)
            else:
                branch = await self._earlier(conversation, before, limit)
            messages = await self._shown(conversation, branch)
            following = branch[-1].id if branch and branch[-1].parent is not None else None
            page = self._line(conversation) | {"messages": messages, "next": following}
            await reply_json(exchange, page)

    async def change(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """PATCH /conversations/{id}: its title, whether it is put away or unread, its branch."""
        check_json_body(exchange.headers)
        asked = json.read_object(await exchange.read(MOST_BYTES))
        for member in asked:
            if member not in CHANGES:
                raise InvalidRequest("other", f"is none of {', '.join(CHANGES)}")
        title = read_title(asked)
        archived, unread = read_mark(asked, "archived"), read_mark(asked, "unread")
        conversation = await self._find(caller, name)
        head = await self._head(conversation, asked)
        changed = await self._conversations.change(
            conversation,
            title=title,
            archived=archived,
            unread=unread,
            head=head,
            now=self._clock.wall_us(),
        )
        await reply_json(exchange, self._line(changed))

    async def export(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """GET /conversations/{id}/export: all of it, as JSON or as Markdown."""
        query = read_query(exchange.query.decode("latin-1"))
        form = read_word(query, "format") or FORMS[0]
        if form not in FORMS:
            raise InvalidRequest("format", f"must be one of {', '.join(FORMS)}")
        conversation = await self._find(caller, name)
        is_json = form == FORMS[0]
        media = b"application/json" if is_json else b"text/markdown; charset=utf-8"
        ending = b"json" if is_json else b"md"
        file = b'attachment; filename="%b.%b"' % (conversation.id.encode(), ending)
        fields = [
            (b"content-type", media),
            (b"cache-control", b"no-store"),
            (b"content-disposition", file),
            (b"x-content-type-options", b"nosniff"),
        ]
        async with self._readers.room(caller.actor.name, PAGE_BYTES):
            await exchange.start(200, fields)
            if exchange.method != "HEAD":
                pieces = self._as_json(conversation) if is_json else self._as_text(conversation)
                async for piece in pieces:
                    await exchange.write(piece)
            await exchange.write(b"", more=False)

    async def front(self, exchange: Exchange, caller: Caller) -> None:
        """GET /owner: who is asked, and what agents are told of a client."""
        del caller
        policy = self._policy
        page = {
            "agent": policy.agent,
            "orchestrator": policy.orchestrator,
            "relay": policy.relays,
            "client_context": {
                "models": list(policy.model_context),
                "tools": list(policy.tool_context),
            },
            "content_bytes": policy.content_bytes,
            "history": policy.history,
        }
        await reply_json(exchange, page)

    # ------------------------------------------------------------------ reading what was asked

    async def _find(self, caller: Caller, name: str) -> KeptConversation:
        found = await self._conversations.find(caller.owner, name)
        if found is None:
            raise ConversationNotFound
        return found

    async def _newest(
        self, conversation: KeptConversation, caller: Caller, limit: int
    ) -> tuple[KeptConversation, Sequence[KeptMessage]]:
        """A conversation and its newest messages, of one moment.

        An answer is written down together with those of whom it mentions: they are shown so too.
        """
        branch = await self._conversations.branch(conversation, last=None, limit=limit)
        for _ in range(MOST_LOOKS):
            seen, conversation = conversation, await self._find(caller, conversation.id)
            if conversation == seen:
                break
            branch = await self._conversations.branch(conversation, last=None, limit=limit)
        return conversation, branch

    async def _earlier(
        self, conversation: KeptConversation, before: str, limit: int
    ) -> Sequence[KeptMessage]:
        found = await self._conversations.message(conversation, before)
        if found is None:
            raise MessageNotFound
        if found.parent is None:
            return ()
        return await self._conversations.branch(conversation, last=found.parent, limit=limit)

    def _filter(self, query: Query) -> ConversationFilter:
        search, trigger = read_word(query, "search"), read_word(query, "trigger")
        words = () if search is None else self._words(search)
        if search is not None and not 1 <= len(words) <= MOST_SEARCHED:
            raise InvalidRequest("search", f"must hold 1 to {MOST_SEARCHED} words")
        if trigger not in {None, *TRIGGERS}:
            raise InvalidRequest("trigger", f"must be one of {', '.join(TRIGGERS)}")
        return ConversationFilter(
            words=words,
            agent=read_word(query, "agent"),
            trigger=trigger,
            since=read_moment(query, "since"),
            until=read_moment(query, "until"),
            unread=read_flag(query, "unread"),
            archived=read_flag(query, "archived"),
        )

    async def _head(self, conversation: KeptConversation, asked: Shown) -> int | None:
        if "head" not in asked:
            return None
        head = asked["head"]
        found = None
        if isinstance(head, str):
            found = await self._conversations.message(conversation, head)
        if found is None:
            raise MessageNotFound
        return found.n

    # ------------------------------------------------------------------ showing

    def _line(self, conversation: KeptConversation) -> Shown:
        return {
            "id": conversation.id,
            "title": conversation.title,
            "agent": conversation.agent,
            "trigger": conversation.trigger,
            "created": when(conversation.created),
            "updated": when(conversation.updated),
            "unread": conversation.unread,
            "archived": conversation.archived is not None,
            "answering": conversation.answering is not None,
            "size": conversation.size,
            "tokens_in": conversation.tokens_in,
            "tokens_out": conversation.tokens_out,
            "cost": format_amount(conversation.cost),
            "currency": self._policy.currency,
        }

    async def _shown(
        self, conversation: KeptConversation, branch: Sequence[KeptMessage]
    ) -> Sequence[Shown]:
        parents = [each.parent for each in branch]
        beside = await self._conversations.beside(conversation, parents) if branch else ()
        siblings: dict[int | None, list[str]] = {}
        for parent, id in beside:
            siblings.setdefault(parent, []).append(id)
        found: list[Shown] = []
        for each in branch:
            found.append(message_page(each, siblings.get(each.parent, [])))
            await asyncio.sleep(0)  # each may be long, and others wait
        return found

    async def _branch(self, conversation: KeptConversation) -> Sequence[KeptMessage]:
        """What is shown of a conversation, as ids in the order in which it was said."""
        found: list[KeptMessage] = []
        last = conversation.head
        while last is not None:
            some = await self._conversations.branch(conversation, last=last, limit=AT_A_TIME)
            if not some:
                break
            # What was said is read again when it is written: not all of it is held at once.
            found += [replace(each, parts=b"", metadata=None) for each in some]
            last = some[-1].parent
        return found[::-1]

    async def _pieces(self, conversation: KeptConversation) -> AsyncIterator[KeptMessage]:
        for each in await self._branch(conversation):
            found = await self._conversations.message(conversation, each.id)
            if found is not None:
                yield found

    async def _as_json(self, conversation: KeptConversation) -> AsyncIterator[bytes]:
        head = json.write(self._line(conversation))
        yield head[:-1] + b',"messages":['
        comma = b""
        async for each in self._pieces(conversation):
            yield comma + json.write(message_page(each, []))
            comma = b","
        yield b"]}"

    async def _as_text(self, conversation: KeptConversation) -> AsyncIterator[bytes]:
        yield f"# {conversation.title or conversation.id}\n".encode()
        async for each in self._pieces(conversation):
            who = "You" if each.role == "user" else f"@{each.author}"
            text = [f"\n## {who}, {when(each.created)}\n"]
            text += [
                f"\n> {tool['name']}: {tool['status'] or 'no result'}\n" for tool in tools_of(each)
            ]
            text.append(f"\n{each.text}\n" if each.text else "")
            if each.role == "assistant" and each.state != "whole":
                text.append(f"\n*({each.state}{f': {each.code}' if each.code else ''})*\n")
            yield "".join(text).encode("utf-8", "replace")


ROUTES: Final = (
    Row(
        method="GET",
        path="/conversations",
        endpoint=ConversationPages.list,
        permission="run:read",
        summary="One's conversations, the one in which something happened last first",
        query=(
            *("limit", "before", "search", "agent", "trigger", "since", "until"),
            *("unread", "archived"),
        ),
        answer="Page",
    ),
    Row(
        method="GET",
        path="/conversations/{conversation}",
        endpoint=ConversationPages.show,
        permission="run:read",
        summary="One conversation, its newest messages first",
        query=("limit", "before"),
        answer="Page",
    ),
    Row(
        method="PATCH",
        path="/conversations/{conversation}",
        endpoint=ConversationPages.change,
        permission="run:cancel",
        summary="Rename a conversation, put it away, mark it, or show another branch",
        body="ConversationChanges",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/conversations/{conversation}/export",
        endpoint=ConversationPages.export,
        permission="run:read",
        summary="A conversation to take along, as JSON or Markdown",
        query=("format",),
        answer="Page",
        media="text/markdown",
    ),
    Row(
        method="GET",
        path="/owner",
        endpoint=ConversationPages.front,
        permission="run:read",
        summary="Who is asked in conversations, and what agents are told of a client",
        answer="Page",
    ),
)
