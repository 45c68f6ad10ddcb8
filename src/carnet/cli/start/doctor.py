"""What `carnet doctor` looks at: each finding says what is so, what it means and how to mend it.

Law. A check that cannot be made is a finding too; none hides the ones after it.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from shlex import quote
from typing import TYPE_CHECKING

from carnet.assembly.doctor.findings import Finding, of_mode, of_settings, of_store
from carnet.cli.failures import GatewayError
from carnet.cli.invocation import Invocation
from carnet.cli.reach import counterpart, gateway
from carnet.cli.references import check_files, look_at, references
from carnet.cli.start.engine_check import missing_engine
from carnet.config import Settings, resolve_secret, secret_path
from carnet.errors import CarnetError, ConfigInvalid, Upstream
from carnet.ports.world.http_client import Outbound

if TYPE_CHECKING:
    from carnet.cli.source import Sight
    from carnet.ports.trust.trust import Peer
    from carnet.ports.world.http_client import HttpClient

AGAIN = "Correct it, then look again: carnet doctor"
_OK = 200


async def examine(invocation: Invocation, *, load: bool) -> list[Finding]:
    """Every finding, in the order things depend on one another."""
    try:
        settings = invocation.settings
    except ConfigInvalid as error:
        return [_failure("config", each) for each in (error, *error.others)]
    except CarnetError as error:
        return [_failure("config", error)]
    findings = [Finding("ok", "config", f"{settings.source} can be used.")]
    findings += of_settings(settings)
    findings += _secrets(settings)
    async with gateway.open_http() as http:
        findings += [finding async for finding in _agents(settings, http, load=load)]
        running, of_port = await _gateway(settings, http)
        findings += of_port
        of_store, stored = await _store(settings, running=running)
        findings += of_store
        for peer in [*_listed(settings), *stored]:
            findings.append(await _peer(http, peer, settings.gateway.domain))
    return findings


def _failure(what: str, error: CarnetError, fix: str = "") -> Finding:
    text = f"{error.safe_text} ({error.detail})" if error.detail else error.safe_text
    next_step = AGAIN if isinstance(error, ConfigInvalid) else error.next_step
    return Finding("fail", what, text, fix or next_step)


def _secrets(settings: Settings) -> Iterator[Finding]:
    from carnet.stores.secrets import secrets_file

    own = secret_path(settings.store.secrets, settings.base)
    if not own.exists():
        fix = f"Make it: carnet init {quote(str(settings.base))}"
        yield Finding("fail", "secrets", f"{own} does not exist; tokens cannot be checked.", fix)
    else:
        found = of_mode(own)
        if found.status == "ok":
            try:
                secrets_file.load(own)
            except CarnetError as error:
                found = _failure("secrets", error)
        yield found
    for key, ref in references(settings):
        try:
            resolve_secret(ref, settings.base, key=key)
        except CarnetError as error:
            yield _failure("secrets", error)
            continue
        yield (
            Finding("ok", "secrets", f"{key} is there.")
            if ref.env
            else of_mode(secret_path(ref, settings.base))
        )


async def _agents(settings: Settings, http: "HttpClient", *, load: bool) -> AsyncIterator[Finding]:
    if not settings.agents:
        fix = f"Write a section [agents.NAME] into {settings.source}."
        yield Finding("warn", "agents", "No agent is configured.", fix)
    for name, model in settings.models.items():
        yield await _upstream(http, name, model.kind, model.url, "models")
    if away := await missing_engine(settings, http):
        text = f"No agent loop answers at {away}, [engine] listen; calls to it will fail."
        yield Finding("warn", "engine", text, "Start it: carnet engine")
    for name, agent in settings.agents.items():
        if agent.url is not None and agent.target is None:
            yield await _upstream(http, name, agent.kind, agent.url)
            continue
        try:
            sight = look_at(settings, name, load=load)
        except CarnetError as error:
            yield _failure("agents", error)
            continue
        if agent.kind == "engine":
            yield Finding("ok", "agents", f"{name} is answered by the agent loop.")
        else:
            yield _function(f"{name} is {agent.target}", sight, load=load)


def _function(text: str, sight: "Sight", *, load: bool) -> Finding:
    """What was seen of a function, and how more is."""
    if load:
        return Finding("ok", "agents", f"{text}, and was imported.")
    if sight.unseen:
        fix = "Import it, which runs its code: carnet doctor --load"
        return Finding("warn", "agents", f"{text}; not seen: {sight.unseen}.", fix)
    return Finding("ok", "agents", f"{text}: {', '.join(sight.functions)}; read, not run.")


async def _upstream(
    http: "HttpClient", name: str, kind: str, url: str, family: str = "agents"
) -> Finding:
    """Whether anything at all answers there; without a credential it may well refuse."""
    request = Outbound(method="GET", url=url, body=b"", headers={}, bounds=counterpart.SHORT)
    try:
        async with http.send(request):
            pass
    except Upstream:
        text = f"{name} is at {url}, where nothing answers; calls to it will fail."
        return Finding("warn", family, text, f"Start it, or correct [{family}.{name}] url.")
    domain = await counterpart.name_behind(http, url) if kind == "openai" else None
    if domain is not None:
        text = (
            f"{name} is of kind openai and {url} is the gateway {domain}: run, depth and payer do "
            "not travel there, so a loop through it is not noticed."
        )
        fix = f"List it as a peer: carnet peers add {domain} --url URL; then call @NAME@{domain}"
        return Finding("warn", family, text, fix)
    return Finding("ok", family, f"{name} is at {url}, which answers.")


async def _gateway(settings: Settings, http: "HttpClient") -> tuple[bool, list[Finding]]:
    """Whether our gateway runs, and what is to be said of its address."""
    from carnet.assembly.sockets import bound

    place = await gateway.own_place(settings, http)
    if place is not None and await gateway.is_answering(http, place):
        found = await _our_own(settings, http, place)
        if found is not None:
            return True, [Finding("ok", "port", f"Our gateway answers at {place.url}."), *found]
        if place.url == gateway.written_url(settings) and not await _is_ready(http, place):
            text = (
                f"Our gateway answers at {place.url} and cannot take work now (/readyz says 503)."
            )
            fix = "Mend what the findings about the store name; its log says more."
            return True, [Finding("fail", "port", text, fix)]
        text = f"Something answers at {place.url}, but it does not know the tokens of this store."
        fix = f"Stop it, or choose another port in {settings.source.name}: [gateway] port"
        return False, [Finding("fail", "port", text, fix)]
    try:
        with bound(settings):
            where = "A port is chosen at every start" if place is None else f"{place.url} is free"
    except CarnetError as error:
        return False, [_failure("port", error)]
    return False, [Finding("ok", "port", f"{where}; no gateway runs there.")]


async def _our_own(
    settings: Settings, http: "HttpClient", place: gateway.Place
) -> list[Finding] | None:
    """What a gateway says of itself that takes a token of our store; None if it does not."""
    try:
        async with gateway.operator_token(settings) as secret:
            by = gateway.Credential(secret, is_new=True)
            request = gateway.request_to(place, "GET", "/runs?limit=1", by)
            async with gateway.sending(http, request, token_is_new=True):
                pass
            return await _last_reload(http, gateway.request_to(place, "GET", "/readyz", by))
    except (CarnetError, GatewayError):
        return None


async def _last_reload(http: "HttpClient", request: Outbound) -> list[Finding]:
    """What came of the last time that the gateway was told to read its configuration again."""
    async with http.send(request) as answer:
        last = gateway.decode(await answer.read()).get("reload")
    if last is None:
        return []
    if not last["applied"]:
        text = f"At {last['at']} it refused its configuration: {'; '.join(last['errors'])}"
        return [Finding("warn", "reload", text, "Correct it, then: carnet reload")]
    if last["needs_restart"]:
        text = f"It needs a restart for {', '.join(last['needs_restart'])}."
        return [Finding("warn", "reload", text, "Restart it, or take that back: carnet reload")]
    return [Finding("ok", "reload", f"It has read its configuration at {last['at']}.")]


async def _is_ready(http: "HttpClient", place: gateway.Place) -> bool:
    """Whether a gateway says that it can take work."""
    url = f"{place.url}/readyz"
    request = Outbound(method="GET", url=url, body=b"", headers={}, bounds=counterpart.SHORT)
    try:
        async with http.send(request) as answer:
            return answer.status == _OK
    except Upstream:
        return False


async def _store(settings: Settings, *, running: bool) -> tuple[list[Finding], list["Peer"]]:
    """What is to be said of the store, and the peers that are only there."""
    from carnet.assembly.store import open_from

    try:
        check_files(settings)
        store = await open_from(settings, exclusive=False, peers=())
    except CarnetError as error:
        return [_failure("store", error)], []
    try:
        findings = await of_store(settings, store)
        stored = await store.peers.list()
        if store.cluster is None:
            findings.append(await _lock(settings, running=running))
        else:
            findings.append(_shared(await store.cluster.count(), running=running))
    except CarnetError as error:
        return [_failure("store", error)], []
    finally:
        await store.close()
    findings += _both_speak(settings, stored)
    return findings, [peer for peer in stored if peer.domain not in settings.peers]


def _shared(gateways: int, *, running: bool) -> Finding:
    """Who uses a store that several gateways may use at once."""
    if running and not gateways:
        return _elsewhere()
    texts = {0: "No gateway uses the store.", 1: "1 gateway uses the store."}
    return Finding("ok", "lock", texts.get(gateways, f"{gateways} gateways use the store."))


def _elsewhere() -> Finding:
    text = "A gateway answers on the port, but it does not use this store."
    return Finding("warn", "lock", text, "Check that it runs with this configuration.")


async def _lock(settings: Settings, *, running: bool) -> Finding:
    """Whether a gateway could take the store for itself."""
    from carnet.assembly.store import open_from

    try:
        store = await open_from(settings, exclusive=True)
    except CarnetError as error:
        if running:
            return Finding("ok", "lock", "The running gateway has the store.")
        fix = "Stop the gateway that has it, or give this one a store of its own ([store] url)."
        return Finding("warn", "lock", error.safe_text, fix)
    await store.close()
    return _elsewhere() if running else Finding("ok", "lock", "No other gateway has the store.")


def _both_speak(settings: Settings, stored: Sequence["Peer"]) -> Iterator[Finding]:
    for peer in stored:
        if peer.domain in settings.peers:
            name = settings.source.name
            text = f"{peer.domain} is in {name} and in the store; {name} wins."
            fix = f'Keep one: take [peers."{peer.domain}"] out of {name}, or leave it as it is.'
            yield Finding("warn", "peers", text, fix)


def _listed(settings: Settings) -> Iterator["Peer"]:
    """The peers of the file, each with its token if that can be read."""
    from carnet.ports.trust.trust import Peer

    for domain, peer in settings.peers.items():
        token = None
        if peer.token is not None:
            with suppress(CarnetError):  # which is a finding of its own
                token = resolve_secret(peer.token, settings.base, key=f"peers.{domain}.token")
        yield Peer(domain=domain, url=peer.url, token=token, from_file=True)


async def _peer(http: "HttpClient", peer: "Peer", own: str) -> Finding:
    """Whether a peer answers, by its name, and takes our token."""
    domain, url = peer.domain, peer.url
    section = f'[peers."{domain}"]'
    if not await gateway.is_answering(http, gateway.Place(url, is_ours=False)):
        text = f"{domain} does not answer at {url}; calls to it will fail."
        fix = f"{section} url" if peer.from_file else f"carnet peers add {domain} --url URL"
        return Finding("warn", "peers", text, f"Ask its operator, or correct it: {fix}")
    name = await counterpart.name_at(http, url)
    if name is not None and name != domain:
        whose = "our own name" if name == own else "another name"
        text = f"{domain} at {url} calls itself {name}, {whose}; signed calls to it will fail."
        fix = f"{section}" if peer.from_file else f"carnet peers remove {domain}"
        return Finding("fail", "peers", text, f"List it by its own name, or correct url: {fix}")
    if peer.token is not None and await counterpart.is_refused(http, url, peer.token):
        text = (
            f"{domain} answers at {url}, but does not take our token: it ended, or is not theirs."
        )
        fix = f"{section} token" if peer.from_file else f"carnet peers add {domain} --token-file F"
        return Finding("fail", "peers", text, f"Ask its operator for a new one, then: {fix}")
    return Finding("ok", "peers", f"{domain} answers at {url}.")
