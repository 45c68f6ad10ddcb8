"""Calls that an agent makes in process, on behalf of the call it answers.

Its request is what is compared when it is repeated.

Law 1. A child has no more rights, depth, time or money than the call it is made in.
Law 2. It is recorded as any call is: made again, it is answered from its record.
"""

import contextlib
from collections.abc import Sequence

import msgspec

from carnet.core.call import AGENT_OWNED, Admitted, Ask, Call, Target, quote, turn_key
from carnet.core.chain.allowance import NOTHING, Allowance, Aside
from carnet.core.chain.capabilities import Capabilities
from carnet.core.chain.carnet import Carnet, within_budget
from carnet.core.chain.grounds import Grounds, write_grounds
from carnet.core.messages.interrupt import StatedResolution
from carnet.core.people.address import (
    handle_of,
    host_of,
    identity_at,
    identity_of,
    is_below,
    parse_handle,
)
from carnet.core.people.identity import Actor, Caller, Payer, Secret
from carnet.core.people.proof import Spending
from carnet.errors import (
    AgentNotFound,
    BudgetExceeded,
    LoopDetected,
    PaymentRequired,
    PolicyStateInvalid,
    SpendingLimitReached,
)
from carnet.guards.admission.budgets import (
    learn,
    least_of,
    left_for,
    opening_of,
    set_aside,
    standing_of,
    take_of,
)
from carnet.guards.admission.child_request import child_digest, child_request
from carnet.guards.admission.order import GateParts, Signed
from carnet.guards.admission.policy import asking
from carnet.guards.admission.tasks import answer_of
from carnet.guards.admission.transaction import (
    Entry,
    Transaction,
    deadline_of,
    is_free,
)
from carnet.guards.caller.trust import check_rights
from carnet.guards.limits import Paying, check_pay
from carnet.guards.proof.travel import check_reentry
from carnet.guards.target.target import check_credential, find_skill, permit
from carnet.ports.calls.admission import ClientCallee, ClientLeave
from carnet.ports.money.budgets import (
    CALL,
    Budgets,
    Opening,
)


class ChildAllowance(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a child may spend, and what it is asked and told then."""

    target: Target
    ask: Ask
    carnet: Carnet
    allowance: Allowance | None = None
    aside: Aside = NOTHING
    above: Opening | None = None
    wanted: Aside | None = None  # of the store, where nothing is left that could be set aside here


class Children:
    """Admits children."""

    def __init__(
        self, parts: GateParts, transaction: Transaction, paying: Paying, by: Signed | None
    ) -> None:
        """What they are judged with; the depths of `parts` are for chains that no stamp bounds."""
        self._router = parts.router
        self._peers = parts.peers
        self._clock = parts.clock
        self._domain = parts.domain
        self._depths = parts.depths
        self._transaction = transaction
        self._paying = paying
        self._schemas = None if by is None else by.schemas
        self._on_list = None if by is None else by.on_list
        self._currency = "" if by is None else by.currency
        self._claim = asking(parts.policy, transaction.claim)
        self._budgets = parts.budgets

    async def admit(self, parent: Call, name: str, ask: Ask, *, index: int, auth: str) -> Call:
        """Claim the turn of a call that an agent makes."""
        target = self._router.find(name)
        carnet = parent.carnet.next_hop(
            index=index,
            speaker=target.speaker,
            key=parent.record.key,
            default=self._depths.of(target.chain),
            stamp=target.chain,
            via=handle_of(parent.agent, self._domain),
        )
        carnet = self._within_budget(carnet, target)
        if not target.is_remote:  # else its own gateway judges
            check_reentry(target, carnet.path, self._domain)
        self._permit(parent, target, ask)
        payer, credential = self._payer(parent, target, auth)
        check_credential(target, credential)
        deadline = deadline_of(carnet.deadline, target, self._clock)
        carnet = msgspec.structs.replace(carnet, deadline=deadline)
        request = child_request(ask)
        allowed = ChildAllowance(target=target, ask=ask, carnet=carnet, allowance=parent.allowance)
        if parent.allowance is not None or ask.share is not None:
            most = 0 if auth == AGENT_OWNED else quote(target, ask, len(request))
            allowed = await self._allow(parent, allowed, payer, most)
            target, carnet = allowed.target, allowed.carnet
        admitted = Admitted(
            agent=target.name,
            ask=_passed_on(allowed.ask, parent.ask.capabilities),
            carnet=carnet,  # what a callee elsewhere receives, as it stands
            caller=_calling(parent),
            payer=payer,
            correlation=parent.correlation,
            set_aside=allowed.aside.money,
            granted=(allowed.aside.calls, allowed.aside.tokens),
            credential=credential,
            reserve=0 if payer.limit is None else quote(target, ask, len(request)),
            delegation=parent.delegation,
            quota=parent.quota,
        )
        entry = _entry(admitted, target, parent, request, self._clock.wall_us())
        if allowed.allowance is not None or (self._budgets is not None and self._budgets.known):
            entry = self._spending(entry, parent, allowed)
        call = await self._claim(entry)
        if parent.resolved and call.known and call.record.state == "waiting":
            return await self._resume(entry, call, parent)
        return call

    def _within_budget(self, carnet: Carnet, target: Target) -> Carnet:
        """The document within the budget `chain_depth` of whom it is for."""
        ceiling, last = target.chain_depth, self._depths.of(target.chain)
        if ceiling is None:
            return carnet
        return within_budget(carnet, ceiling, of="agent", default=last, root=carnet.run)

    async def _allow(
        self, parent: Call, allowed: ChildAllowance, payer: Payer, most: int
    ) -> ChildAllowance:
        """Set aside what a child may spend, out of its share or of what there is for all."""
        target, ask, carnet = allowed.target, allowed.ask, allowed.carnet
        above, wanted = opening_of(parent, self._clock), None
        allowance = await self._share(parent, ask, carnet.deadline, most)
        try:
            aside, ask = set_aside(allowance, target, ask, most, self._currency)
            left = left_for(allowance, target, aside)
        except BudgetExceeded as short:
            is_money = short.facts["part"] == "money"
            if is_money and await is_free(target, payer.quota, is_task=False):
                target, most = target.as_free(), most - target.most_cost
                aside, left = self._set_aside_free(allowance, target, ask, most)
            elif parent.record.fence > 1:  # it may have been made before: the store knows
                aside, left, wanted = NOTHING, least_of(allowance, most), Aside(most, 1, 0)
            else:
                if allowance is not parent.allowance:
                    allowance.close()
                raise
        carnet = msgspec.structs.replace(carnet, budget=left)
        return ChildAllowance(
            target=target,
            ask=ask,
            carnet=carnet,
            allowance=allowance,
            aside=aside,
            above=above,
            wanted=wanted,
        )

    async def _share(self, parent: Call, ask: Ask, deadline: float | None, most: int) -> Allowance:
        """What a child may spend: its share, or what there is for all.

        Where nothing is left, the store is asked: somebody may have raised it.
        """
        above, share = parent.allowance, ask.share
        if above is None:
            share = share or Spending()
            currency = None if share.money is None else self._currency
            share = msgspec.structs.replace(share, currency=currency)
            return Allowance(share, until=deadline)
        runs_again = parent.record.fence > 1
        if runs_again or above.is_short(most):
            await learn(self._budgets, above, runs_again=runs_again)
        if share is None:
            return above
        part = above.split(share, self._currency)
        part.until = deadline
        return part

    def _spending(self, entry: Entry, parent: Call, allowed: ChildAllowance) -> Entry:
        """An entry with what it takes of the budget of its parent, or of its own share."""
        admitted, target, above, opens = entry.admitted, entry.target, allowed.above, None
        allowance, aside = allowed.allowance, allowed.aside
        names = standing_of(self._budgets, admitted.payer, admitted.carnet.run)
        if allowance is None or (names and admitted.payer != parent.payer):
            if not names:
                return entry
            above = None  # the agent pays from its own account, which has a budget of its own
            aside = Aside(quote(target, admitted.ask, len(entry.request)), 1, 0)
        elif allowance is parent.allowance:
            names = (allowance.name or "", *names)
        else:  # its own, below that of its parent
            allowance.name, allowance.opening = CALL + entry.key.hex(), allowance.limits
            parent_name = None if above is None else above.name
            opens = Opening(
                name=allowance.name,
                limits=allowance.limits,
                parent=parent_name,
                asks=allowance.asks,
            )
            names = (allowance.name, *names)
        taken = allowed.wanted or aside
        budget = take_of(admitted, target, names, taken, above=above, opens=opens)
        return msgspec.structs.replace(entry, budget=budget, aside=aside, allowance=allowance)

    async def _resume(self, entry: Entry, call: Call, parent: Call) -> Call:
        """Bring a child that waits the answers that its parent was given.

        Where its payer, who was asked, has no room for a payment any more, it waits on.
        """
        short = (SpendingLimitReached, PaymentRequired, BudgetExceeded)
        passed = (PolicyStateInvalid, *(short if entry.admitted.payer == parent.payer else ()))
        for each in parent.resolved:
            brought = StatedResolution(each.interrupt.state, each.resolution)
            answer = msgspec.structs.replace(answer_of(brought), interrupt=each.interrupt.id)
            answered = msgspec.structs.replace(entry, resolution=answer)
            with contextlib.suppress(*passed):  # it waits for another, or no longer
                call = await self._transaction.claim(answered)
            if not call.known:
                break
        return call

    def let_out(self, parent: Call, callee: ClientCallee) -> ClientLeave:
        """Let a call pass us that the agent makes by itself.

        Its callee has no document of ours to judge the path by: a loop is refused here. It is
        listed where the operator has written down that place, under the name that it goes by.
        """
        via = handle_of(parent.agent, self._domain)
        path = parent.carnet.path if via is None else (*parent.carnet.path, via)
        at_url = identity_at(callee.url)
        names = callee.identities if at_url is None else callee.identities | {at_url}
        for identity in names:
            self._refuse_return(identity, path)
        return ClientLeave(via=via, is_listed=any(self._lists(each, callee.url) for each in names))

    def _refuse_return(self, identity: str, path: Sequence[str]) -> None:
        try:
            check_reentry(self._router.own(identity), path, self._domain)
        except AgentNotFound:  # it is another's, who would not see the path
            passed = [parse_handle(each) for each in path]
            if identity in [identity_of(each.local, each.domain) for each in passed]:
                raise LoopDetected from None

    def _lists(self, identity: str, url: str) -> bool:
        host = host_of(identity)
        known = [self._peers.find(domain) for domain in (host, host.partition(".")[2])]
        return any(peer and peer.may_forward and is_below(url, peer.url) for peer in known)

    def _set_aside_free(
        self, allowance: Allowance, target: Target, ask: Ask, own_price: int
    ) -> tuple[Aside, Spending]:
        """Set aside what we ask for ourselves; the agent elsewhere is told to spend nothing."""
        taken, _ = set_aside(allowance, target, ask, own_price, self._currency)
        left = left_for(allowance, target, taken)
        return taken, msgspec.structs.replace(left, money=0, currency=self._currency)

    def _permit(self, parent: Call, target: Target, ask: Ask) -> None:
        caller, skill = parent.caller, find_skill(target, ask)
        if caller.standing is None:
            permit(caller, target)
        else:  # A35: for a signed caller nothing is done that it may not do itself
            check_rights(caller, caller.standing, target, skill)
        if target.allow is not None and self._on_list is not None:
            self._on_list.check_child(parent, target, ask)
        if self._schemas is not None and skill is not None and ask.payload is not None:
            self._schemas.check_input(target.name, skill, ask.payload)

    def _payer(self, parent: Call, target: Target, auth: str) -> tuple[Payer, Secret | None]:
        if auth == AGENT_OWNED:
            return self._paying.agent_account(parent.agent), None
        check_pay(parent.caller, target)
        return parent.payer, parent.credential


def _passed_on(ask: Ask, stated: Capabilities | None) -> Ask:
    """What a child is told of who reads the answer: all but that its mentions are relayed.

    It is read by the agent that asks, unless whoever asks says that it relays them.
    """
    if stated is None or ask.capabilities is not None:
        return ask
    return msgspec.structs.replace(ask, capabilities=stated.unrelayed())


def _entry(admitted: Admitted, target: Target, parent: Call, request: bytes, now: int) -> Entry:
    digest = child_digest(target.name, request)
    return Entry(
        admitted=admitted,
        target=target,
        key=turn_key(
            payer=admitted.payer.account,
            # One turn id may be several callers': a child belongs to one record (A41).
            actor=f"{admitted.caller.actor.name}#{parent.record.n}",
            agent=target.name,
            carnet=admitted.carnet,
            digest=digest,
        ),
        digest=digest,
        request=request,
        made_in=parent.record,
        allowance=parent.allowance,
        grounds=write_grounds(_grounds(admitted, target)),
        now=now,
    )


def _grounds(admitted: Admitted, target: Target) -> Grounds:
    """Why a child was admitted."""
    carnet, payer = admitted.carnet, admitted.payer
    return Grounds(
        by="in_process",
        caller=admitted.caller.actor.name,
        depth=carnet.depth,
        last_depth=carnet.last_depth,
        stamp=carnet.bound_by,
        agent=target.name,
        skill=admitted.ask.skill,
        checked=admitted.ask.payload is not None,
        needs=target.needs,
        payer=str(payer.account),
        forwarded=payer.by_forwarding,
        limit=payer.limit,
        reserve=admitted.reserve,
    )


def _calling(parent: Call) -> Caller:
    """An agent of ours that calls, with the rights of whoever called it.

    What others vouch for was meant for this agent, and for nobody whom it calls.
    """
    caller = parent.caller
    return msgspec.structs.replace(
        caller,
        actor=Actor(name=f"agent:{parent.agent}", how="in_process"),
        origin=caller.origin or caller.actor,
        evidence=(),
    )


def spending(entry: Entry, budgets: Budgets | None) -> Entry:
    """An entry with what it takes of the budgets that were set here."""
    admitted, target = entry.admitted, entry.target
    names = standing_of(budgets, admitted.payer, admitted.carnet.run)
    if not names:
        return entry
    asked = entry.aside
    if not asked.money:  # whoever calls has no budget of money: ours holds all the same
        most = quote(target, admitted.ask, len(entry.request))
        asked = Aside(most, max(asked.calls, 1), asked.tokens)
    return msgspec.structs.replace(entry, budget=take_of(admitted, target, names, asked))
