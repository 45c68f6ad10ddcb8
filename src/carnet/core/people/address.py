"""Where an agent lives: `@name@domain`, `agent://domain`, or a name on this gateway.

Law 1. One stored form of a domain: lower-case ASCII, at least two labels, no port, no trailing dot.
Law 2. `parse_handle(str(address)) == address`.
Law 3. An identity (`agent://host`) names a sender or recipient of signed requests. Its host is a
       domain; one label or an IP address is well formed and nothing more: nobody looks for a card
       there, and an IP address is believed of a configured peer alone. So is the name that an SDK
       makes of a key, `client-<kid>`, where no domain could be written so: it names who pinned it.
Not here: which of them we serve or may call. That is the router's and the guards' business.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.errors import AddressInvalid

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})+", re.ASCII)
_LOCAL = re.compile(r"[A-Za-z0-9_-](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)

MOST_DOMAIN = 253
MOST_NAME: Final = 512  # characters
AGENT: Final = "agent://"
DID_WEB: Final = "did:web:"  # before a domain, in the names of issuers
_BEFORE_HOST: Final = len(AGENT)

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}", re.ASCII)
_LOOK_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
_ONE_LABEL = re.compile(_LABEL, re.ASCII)
_CLIENT = re.compile(
    r"client-(?!.*(?:\.\.|[xX][nN]--))[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?", re.ASCII
)
# Of what `check_identity` takes: two labels or more, the last of them no number.
_FETCHED = re.compile(rf"{AGENT}(?:{_LABEL}\.)+(?![0-9]+\Z|0x[0-9a-f]*\Z){_LABEL}", re.ASCII)


class Address(Struct, frozen=True, order=True):
    """An agent of an organisation."""

    local: str
    domain: str

    def __str__(self) -> str:
        """The canonical spelling."""
        return f"@{self.local}@{self.domain}"


def check_domain(domain: str) -> str:
    """Return `domain` if it is in its stored form, else refuse it."""
    if len(domain) > MOST_DOMAIN or not _DOMAIN.fullmatch(domain):
        raise AddressInvalid("the domain is not a lower-case DNS name of two or more labels")
    labels = domain.split(".")
    if _NUMBER.fullmatch(labels[-1]):  # resolvers take 127.1 and 0x7f.1 for addresses too
        raise AddressInvalid("an IP address is not a domain")
    for label in labels:
        if label.startswith("xn--"):
            _check_punycode(label)
    return domain


def _check_punycode(label: str) -> None:
    try:
        text = label[4:].encode().decode("punycode")
    except UnicodeError:
        raise AddressInvalid("the domain holds broken punycode") from None
    if text.isascii() or not text.isprintable() or _stored(text) != label[4:]:
        raise AddressInvalid("the domain holds broken punycode")
    if len({_script(letter) for letter in text} & _LOOK_ALIKE) > 1:
        raise AddressInvalid("the domain mixes letters that look alike")


def _stored(text: str) -> str:
    """The punycode of a label in the one form that is registered."""
    return unicodedata.normalize("NFKC", text).lower().encode("punycode").decode()


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def skeleton(host: str) -> str:
    """What a hurried reader sees: two hosts of one skeleton are not registered side by side."""
    seen = host.lower().replace("_", "-").replace("rn", "m").replace("vv", "w")
    return seen.replace("1", "l").replace("0", "o")


def check_local(local: str) -> str:
    """Return the local part if it is a name, else refuse it."""
    if not _LOCAL.fullmatch(local) or ".." in local:
        raise AddressInvalid("the name is not 1 to 64 letters, digits, '.', '_' or '-'")
    return local


def parse_handle(text: str) -> Address:
    """Read `@x@domain`, `x@domain` or `acct:x@domain`."""
    body = text[5:] if text[:5].lower() == "acct:" else text.removeprefix("@")
    local, at, domain = body.partition("@")
    if not at:
        raise AddressInvalid("it has no domain")
    return Address(check_local(local), check_domain(domain))


def parse_acct(text: str) -> Address:
    """Read `acct:x@domain`, in whatever case its scheme is; nothing else is one."""
    if text[:5].lower() != "acct:":
        raise AddressInvalid("it does not begin with acct:")
    return parse_handle(text)


@lru_cache(maxsize=1024)
def handle_of(name: str, domain: str) -> str | None:
    """The address of an agent of an organisation; None for a name that no address can have."""
    return f"@{name}@{domain}" if _LOCAL.fullmatch(name) and ".." not in name else None


def asker(origin: str | None, agent: str, domain: str) -> str:
    """The address of the agent that asks: `origin` where it says so, else the agent of the turn."""
    name = origin or agent
    return handle_of(name, domain) or name


def check_name(name: str) -> str:
    """Return what an agent calls another one by if it can be recorded, else refuse it."""
    if len(name) > MOST_NAME or not name.isprintable():
        raise AddressInvalid(f"it is longer than {MOST_NAME} characters, or not all of it is text")
    return name


def is_handle(text: str) -> bool:
    """Whether a model name is meant as a mention of an agent elsewhere."""
    return text.startswith("@") or text[:5].lower() == "acct:"


def is_agent_uri(text: str) -> bool:
    """Whether a name is meant as a SAMVAD identity."""
    return text[:8].lower() == "agent://"


def is_elsewhere(name: str) -> bool:
    """Whether the name of an agent, as a router gives it, is that of one elsewhere."""
    return name.startswith(("@", AGENT))


def parse_agent_uri(text: str) -> str:
    """Read `agent://domain` and give the domain."""
    if not text.startswith("agent://"):
        raise AddressInvalid("it does not begin with agent://")
    return check_domain(text[8:])


@lru_cache(maxsize=1024)  # those who call and are called are few; what is refused is not kept
def check_identity(text: str) -> str:
    """Return `agent://host` if it is in its stored form, else refuse it."""
    if not text.startswith(AGENT):
        raise AddressInvalid("it does not begin with agent://")
    host = text[_BEFORE_HOST:]
    if _ONE_LABEL.fullmatch(host) and not _NUMBER.fullmatch(host):
        if host.startswith("xn--"):
            _check_punycode(host)
    elif not _IPV4.fullmatch(host) and not _is_client(host):
        check_domain(host)
    return text


def _is_client(host: str) -> bool:
    """Whether it is a client's name that could be no domain: then nobody else can have it."""
    return _CLIENT.fullmatch(host) is not None and _FETCHED.fullmatch(AGENT + host) is None


def host_of(identity: str) -> str:
    """The host of an identity in its stored form."""
    return identity[_BEFORE_HOST:]


def is_ip_identity(identity: str) -> bool:
    """Whether an identity names no domain but an address: what a server on loopback says."""
    return _IPV4.fullmatch(host_of(identity)) is not None


def may_be_fetched(identity: str) -> bool:
    """Whether a card may be looked for where an identity points: at a domain, nowhere else."""
    return _FETCHED.fullmatch(identity) is not None


def identity_of(name: str, domain: str) -> str | None:
    """The identity of an agent of an organisation; None for a name that no host can have."""
    identity = f"{AGENT}{name.lower().replace('_', '-')}.{domain}"
    try:
        return check_identity(identity)
    except AddressInvalid:
        return None


def identity_at(url: str) -> str | None:
    """Whom the URL of an agent's pages names: `agent://critic.globex.example` or its domain."""
    parts = urlsplit(url)
    host, (_, _, local) = parts.hostname or "", parts.path.partition("/agents/")
    if local:
        return identity_of(local.partition("/")[0], host)
    return AGENT + host if host else None


def is_below(url: str, base: str) -> bool:
    """Whether a URL is another one, or a page below it."""
    return f"{url}/".startswith(f"{base.rstrip('/')}/")


class Identities:
    """Under which identity each agent of one gateway is known, and back."""

    def __init__(self, names: Iterable[str], *, domain: str, default: str | None) -> None:
        """`default` is the agent that is known as the domain itself."""
        self._domain = domain
        self._default = default
        self._own: dict[str, str] = {}
        self._names: dict[str, str] = {}
        for name in names:
            identity = AGENT + domain if name == default else identity_of(name, domain)
            if identity is not None and identity not in self._names:  # the first of two keeps it
                self._own[name] = identity
                self._names[identity] = name

    def of(self, name: str) -> str | None:
        """The identity of an agent; the default one's for an empty name, none for one taken."""
        known = name or self._default or ""
        if known in self._own:
            return self._own[known]
        identity = identity_of(name, self._domain)
        return None if identity in self._names else identity

    def names(self, agent: str, url: str = "") -> frozenset[str]:
        """All that a caller may call an agent by when it says whom something is meant for.

        `url` is where others reach this gateway.
        """
        name = agent if not is_elsewhere(agent) else ""
        known = {self._domain, AGENT + self._domain, url, self.of(name)}
        known.add(handle_of(name or self._default or "", self._domain))
        known.add(agent if is_elsewhere(agent) else None)
        return frozenset([each for each in known if each])

    def name(self, host: str) -> str | None:
        """The agent that is known by a host, if one is."""
        return self._names.get(AGENT + host)


def local_name(model: str) -> str:
    """The name that a model path ends in: `researcher` of `bridge/sandbox/researcher`."""
    return model.rpartition("/")[2]


def speaker_of(to: str) -> str:
    """The name that a call goes to, as far as its address says it."""
    if to.startswith(AGENT):
        return to.removeprefix(AGENT).partition(".")[0]
    return to.removeprefix("@").partition("@")[0]
