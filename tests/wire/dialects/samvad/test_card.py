"""Cards: ours as they are served, and a peer's as it is read."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.people.identity import CHAT, Mode, Skill, Trust
from carnet.errors import PeerUnreachable
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.samvad import (
    Card,
    CardFacts,
    CardKey,
    Model,
    read_card,
    write_card,
    write_health,
    write_intro,
)
from carnet.wire.dialects.samvad.card import MOST_KEYS, MOST_SKILLS, MOST_TTL_SECONDS
from tests.wire.dialects.samvad.scene import PUBLIC, encoded

OLD = ed25519.public_of(b"\x03" * 32)
REVIEW = Skill(
    id="review-code",
    name="Review code",
    description="Reads code\nand says what is wrong.",
    input_schema={"type": "object", "properties": {"code": {"type": "string"}}},
    output_schema={"type": "object"},
    modes=("sync", "async"),
    trust="trusted-peers",
    allowed_peers=("agent://globex.example",),
)
FACTS = CardFacts(
    id="agent://critic.acme.example",
    name="Critic",
    version="1.4.0",
    description="Says what is wrong.",
    url="https://gw.acme.example/agents/critic",
    skills=(CHAT, REVIEW),
    keys=(CardKey("key-2", PUBLIC), CardKey("key-1", OLD, active=False)),
    specializations=("code-review",),
    models=(Model("local", "small"),),
    requests_per_minute=60,
    requests_per_sender=20,
)
FIELDS = {
    *("id", "name", "version", "description", "url", "protocolVersion", "specializations"),
    *("models", "skills", "publicKeys", "auth", "rateLimit", "cardTTL", "endpoints"),
}
ENDPOINTS = {"intro", "message", "task", "taskStatus", "stream", "health"}


def written(**changed: Any) -> Any:
    return json.loads(write_card(replace(FACTS, **changed)))


# ------------------------------------------------------------------ writing


def test_a_card_has_all_fourteen_fields() -> None:
    card = written()
    assert card.keys() == FIELDS
    assert (card["id"], card["url"]) == (FACTS.id, FACTS.url)
    assert (card["protocolVersion"], card["cardTTL"]) == ("1.2", 300)
    assert card["specializations"] == ["code-review"]
    assert card["models"] == [{"provider": "local", "model": "small"}]


def test_the_keys_of_a_card_are_padded_base64_and_say_whether_they_hold() -> None:
    assert written()["publicKeys"] == [
        {"kid": "key-2", "key": ed25519.write_public_key(PUBLIC), "active": True},
        {"kid": "key-1", "key": ed25519.write_public_key(OLD), "active": False},
    ]


def test_the_endpoints_of_a_card_are_whole_urls_below_its_own() -> None:
    assert written()["endpoints"] == {
        "intro": f"{FACTS.url}/agent/intro",
        "message": f"{FACTS.url}/agent/message",
        "task": f"{FACTS.url}/agent/task",
        "taskStatus": f"{FACTS.url}/agent/task/{{taskId}}",
        "stream": f"{FACTS.url}/agent/stream",
        "health": f"{FACTS.url}/agent/health",
    }
    card = written(url="https://x.com/")
    assert card["url"] == "https://x.com/"
    assert card["endpoints"]["message"] == "https://x.com/agent/message"
    assert card["endpoints"].keys() == ENDPOINTS


def test_a_skill_is_written_with_its_schemas_modes_and_trust() -> None:
    [chat, review] = written()["skills"]
    assert chat == {
        "id": "chat",
        "name": "chat",
        "description": CHAT.description,
        "inputSchema": CHAT.input_schema,
        "outputSchema": CHAT.output_schema,
        "modes": ["sync", "async", "stream"],
        "trust": "public",
    }
    assert (review["trust"], review["allowedPeers"]) == (
        "trusted-peers",
        ["agent://globex.example"],
    )


@pytest.mark.parametrize("trust", get_args(Trust))
def test_a_bearer_is_asked_for_where_a_skill_is_for_the_authenticated(trust: Trust) -> None:
    schemes = ["bearer", "none"] if trust == "authenticated" else ["none"]
    assert written(trust=trust)["auth"] == {"schemes": schemes}
    assert written(skills=(replace(CHAT, trust=trust),))["auth"] == {"schemes": schemes}
    assert written(skills=(CHAT,), trust=trust)["skills"][0]["trust"] == trust


def test_the_limits_are_told_and_an_absent_one_is_not() -> None:
    assert written()["rateLimit"] == {"requestsPerMinute": 60, "requestsPerSender": 20}
    assert written(tokens_per_sender_per_day=9)["rateLimit"]["tokensPerSenderPerDay"] == 9


def test_names_and_descriptions_are_cut_to_what_the_schema_takes() -> None:
    card = written(name="n" * 101, description="d" * 501)
    assert (len(card["name"]), len(card["description"])) == (100, 500)


def test_the_intro_tells_people_the_same() -> None:
    assert write_intro(FACTS).decode() == (
        "# Critic\n"
        "\n"
        "Says what is wrong.\n"
        "\n"
        "**Protocol:** SAMVAD v1.2\n"
        "**Agent ID:** agent://critic.acme.example\n"
        "**URL:** https://gw.acme.example/agents/critic\n"
        "\n"
        "## Skills\n"
        "\n"
        "- **chat** (`chat`, public, sync, async, stream): Say something and get an answer.\n"
        "- **Review code** (`review-code`, trusted-peers, sync, async): "
        "Reads code and says what is wrong.\n"
    )


def test_health_tells_the_load() -> None:
    body = write_health(version="1.4.0", uptime=12, active=3, queued=0)
    assert json.loads(body) == {
        "status": "ok",
        "protocolVersion": "1.2",
        "agentVersion": "1.4.0",
        "uptime": 12,
        "load": {"activeRequests": 3, "queuedTasks": 0},
    }


# ------------------------------------------------------------------ reading

KEY: dict[str, Any] = {"kid": "k", "key": ed25519.write_public_key(PUBLIC), "active": True}
LEAST: dict[str, Any] = {
    "id": "agent://globex.example",
    "name": "Globex",
    "version": "1",
    "description": "",
    "url": "https://globex.example/",
    "protocolVersion": "1.2",
    "skills": [],
    "publicKeys": [KEY],
}


def read(**changed: Any) -> Card:
    whole = {name: value for name, value in {**LEAST, **changed}.items() if value is not ...}
    return read_card(encoded(whole))


def refused(**changed: Any) -> None:
    with pytest.raises(PeerUnreachable) as caught:
        read(**changed)
    assert "hush-hush" not in caught.value.safe_text


def test_a_card_of_the_least_that_the_schema_asks_for_is_read() -> None:
    assert read() == Card(
        id="agent://globex.example",
        url="https://globex.example",
        name="Globex",
        description="",
        protocol_version="1.2",
        keys=(CardKey("k", PUBLIC),),
        skills=(),
        ttl=300,
    )
    assert read(more={"hush-hush": 1}) == read()


def test_our_own_card_is_read_as_it_was_written() -> None:
    card = read_card(write_card(FACTS))
    assert (card.id, card.url, card.keys, card.ttl) == (FACTS.id, FACTS.url, FACTS.keys, FACTS.ttl)
    assert card.skills == (replace(CHAT, trust="public"), REVIEW)


@pytest.mark.parametrize("name", ["id", "url", "publicKeys", "protocolVersion"])
@pytest.mark.parametrize("value", [..., None, 7, "", "hush-hush"])
def test_a_card_without_what_we_go_by_is_refused(name: str, value: object) -> None:
    if name == "protocolVersion" and isinstance(value, str):
        assert read(protocolVersion=value).protocol_version == value
    else:
        refused(**{name: value})


@pytest.mark.parametrize("body", [b"", b"[]", b"hush-hush", b'{"id":1,"id":2}', b"\xff", b"{}"])
def test_what_is_no_card_is_refused(body: bytes) -> None:
    with pytest.raises(PeerUnreachable):
        read_card(body)


SMALL_ORDER = bytes.fromhex("0100000000000000000000000000000000000000000000000000000000000000")


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [KEY, KEY],
        [{**KEY, "key": ed25519.write_public_key(SMALL_ORDER)}],
        [{**KEY, "key": "AAAA"}],
        [KEY, {**KEY, "kid": "k2", "key": "hush-hush", "active": False}],
        [{**KEY, "kid": ""}],
        [{**KEY, "kid": "k" * 129}],
        [{**KEY, "kid": "k\n"}],
        [{**KEY, "active": 1}],
        [{**KEY, "active": "false"}],
        [{"kid": "k", "active": True}],
        [{**KEY, "kid": f"k{n}"} for n in range(MOST_KEYS + 1)],
        {"k": KEY},
    ],
)
def test_a_card_with_a_key_that_is_none_is_worthless(keys: object) -> None:  # A21
    refused(publicKeys=keys)


@pytest.mark.parametrize(
    "url",
    [
        "globex.example",
        "ftp://globex.example",
        "https://user@globex.example",
        "https://globex.example?x",
        "https://globex.example#x",
        "https://globex.example\\@evil.example",
        "https://globex.example\n",
        "https://",
        "https://globex.example:999999",
    ],
)
def test_the_url_of_a_card_is_plain(url: str) -> None:
    refused(url=url)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:3002", "https://[::1]:8443", "https://a.b.c:8443/base/x"]
)
def test_a_url_may_have_a_port_and_a_path(url: str) -> None:
    assert read(url=url).url == url


@pytest.mark.parametrize("identity", ["agent://127.0.0.1", "agent://localhost"])
def test_a_server_on_loopback_may_say_its_name(identity: str) -> None:
    assert read(id=identity).id == identity
    refused(id="agent://Globex.example")


def test_the_time_that_a_card_holds_is_bounded() -> None:
    assert read(cardTTL=60).ttl == 60
    assert read(cardTTL=-1).ttl == 0
    assert read(cardTTL=10**12).ttl == MOST_TTL_SECONDS
    refused(cardTTL="300")


def test_skills_are_read_as_far_as_they_are_known() -> None:
    odd = {"id": "x", "modes": ["sync", "telepathy"], "trust": "friends", "more": 1}
    [skill] = read(skills=[odd]).skills
    assert skill == Skill(
        id="x", name="", description="", input_schema={}, output_schema={}, modes=("sync",)
    )
    assert read(skills=[{"id": "x", "trust": ["public"]}]).skills[0].trust is None
    refused(skills=[{"name": "no id"}])
    refused(skills=[{"id": f"s{n}"} for n in range(MOST_SKILLS + 1)])


MODES: list[Mode] = list(get_args(Mode))
SKILLS = st.builds(
    Skill,
    id=st.from_regex(r"[a-z-]{1,64}", fullmatch=True),
    name=st.text("abc ", max_size=100),
    description=st.text("abc ", max_size=500),
    input_schema=st.just({"type": "object"}),
    output_schema=st.just({}),
    modes=st.lists(st.sampled_from(MODES), min_size=1, unique=True).map(tuple),
    trust=st.sampled_from(get_args(Trust)),
    allowed_peers=st.none() | st.just(("agent://a.example",)),
)


@given(st.lists(SKILLS, max_size=3), st.integers(0, MOST_TTL_SECONDS))
def test_a_card_is_read_as_it_was_written(skills: list[Skill], ttl: int) -> None:
    card = read_card(write_card(replace(FACTS, skills=tuple(skills), ttl=ttl)))
    assert card.skills == tuple(skills)
    assert card.ttl == ttl


@given(st.binary(max_size=100))
def test_any_bytes_are_a_card_or_refused(body: bytes) -> None:
    with pytest.raises(PeerUnreachable):
        read_card(body)
