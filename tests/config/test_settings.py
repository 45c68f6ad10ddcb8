"""Settings: what is read, what is refused, and that every value knows where it came from."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from carnet.config import (
    AgentSettings,
    Limits,
    SecretRef,
    Settings,
    find,
    load,
    resolve_secret,
)
from carnet.config.lines import find_lines
from carnet.config.settings import FAMILIES, SECTIONS
from carnet.config.sources import docs_of
from carnet.errors import ConfigInvalid

ECHO = '[agents.echo]\ntarget = "agents:echo"\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "carnet.toml"
    path.write_text(text)
    return path


def loaded(folder: Path, text: str = "", env: Mapping[str, str] | None = None) -> Settings:
    return load(write(folder, text), env or {})


def refusal(folder: Path, text: str = "", env: Mapping[str, str] | None = None) -> str:
    with pytest.raises(ConfigInvalid) as caught:
        loaded(folder, text, env)
    return caught.value.safe_text


# ------------------------------------------------------------------------------ what is read


def test_an_empty_file_gives_the_documented_defaults(tmp_path: Path) -> None:
    settings = loaded(tmp_path)
    gateway = settings.gateway
    assert (gateway.host, gateway.port, gateway.domain) == ("127.0.0.1", 8700, "carnet.localhost")
    assert (gateway.max_depth, gateway.max_chain_depth) == (4, 16)
    assert gateway.hard_max_depth is None
    assert gateway.strangers is False
    assert gateway.drain_seconds == 25
    assert settings.store.url == "sqlite:var/carnet.db"
    assert settings.store.secrets == SecretRef(file="var/secrets.key")
    assert settings.ledger.currency == "credits"
    assert (settings.retention.turns, settings.retention.events) == (30, 30)
    assert settings.agents == {}
    assert settings.peers == {}
    assert (settings.source, settings.base) == (tmp_path / "carnet.toml", tmp_path)


def test_every_limit_has_its_documented_default() -> None:
    limits = Limits()
    assert (limits.header_bytes, limits.header_seconds) == (16_384, 10)
    assert (limits.header_fields, limits.url_bytes, limits.chat_body_bytes) == (
        100,
        2048,
        10_485_760,
    )
    assert (limits.body_seconds, limits.write_stall_seconds) == (30, 30)
    assert (limits.streams_per_caller, limits.calls_per_caller, limits.calls) == (256, 512, 4096)
    assert (limits.run_calls, limits.queue, limits.retries) == (256, 4096, 3)


def test_every_key_is_explained_in_a_sentence() -> None:
    for kind in (*SECTIONS.values(), *FAMILIES.values()):
        for key, doc in docs_of(kind).items():
            assert doc.endswith("."), f"{kind.__name__}.{key}"


def test_amounts_are_read_into_micro_units(tmp_path: Path) -> None:
    agent = loaded(tmp_path, ECHO + 'price = "0.0002"\nprice_in = "3"\nprice_out = "15"\n').agents[
        "echo"
    ]
    assert agent.price == 200
    assert agent.full_price.per_million_in == 3_000_000
    assert agent.full_price.per_million_out == 15_000_000


def test_a_peer_has_the_documented_defaults(tmp_path: Path) -> None:
    peer = loaded(tmp_path, '[peers."globex.example"]\nurl = "https://gw.globex.example/"\n').peers[
        "globex.example"
    ]
    assert peer.url == "https://gw.globex.example"
    assert (peer.dialect, peer.credit, peer.max_cost) == ("tangle", 0, 1_000_000)
    assert peer.may_forward_authorization is False


def test_an_agent_may_be_named_by_a_path(tmp_path: Path) -> None:
    name = "bridge/sandbox/researcher"
    settings = loaded(tmp_path, f'[agents."{name}"]\ntarget = "agents:echo"\n')
    assert list(settings.agents) == [name]


def test_the_default_agent_is_the_marked_one_or_the_only_one(tmp_path: Path) -> None:
    assert loaded(tmp_path, ECHO).default_agent == "echo"
    two = ECHO + '[agents.other]\ntarget = "agents:other"\n'
    assert loaded(tmp_path, two).default_agent is None
    assert loaded(tmp_path, two + "default = true\n").default_agent == "other"
    assert loaded(tmp_path).default_agent is None


def test_the_public_url_follows_host_and_port_unless_it_is_set(tmp_path: Path) -> None:
    assert (
        loaded(tmp_path, "[gateway]\nport = 9000\n").gateway.public_url == "http://127.0.0.1:9000"
    )
    assert loaded(tmp_path, '[gateway]\nhost = "::1"\n').gateway.public_url == "http://[::1]:8700"
    fixed = '[gateway]\npublic_url = "https://gw.acme.example"\n'
    assert loaded(tmp_path, fixed).gateway.public_url == "https://gw.acme.example"


def test_a_command_line_may_choose_another_address(tmp_path: Path) -> None:
    settings = loaded(tmp_path).listening_at(None, 9001)
    assert (settings.gateway.host, settings.gateway.port) == ("127.0.0.1", 9001)
    assert settings.gateway.public_url == "http://127.0.0.1:9001"
    assert settings.origins["gateway.port"] == "option --port"
    fixed = loaded(tmp_path, '[gateway]\npublic_url = "https://gw.acme.example"\n')
    assert fixed.listening_at("0.0.0.0", None).gateway.public_url == "https://gw.acme.example"  # noqa: S104  a value


def test_the_file_is_found_upward(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    path = write(tmp_path, "")
    assert find(inner) == path.resolve()


def test_no_file_above_is_found_as_none(tmp_path: Path) -> None:
    assert find(tmp_path) is None


# ------------------------------------------------------------------------------- environment


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    env = {"CARNET__GATEWAY__PORT": "9002", "CARNET__GATEWAY__STRANGERS": "false"}
    settings = loaded(tmp_path, "[gateway]\nport = 9000\n", env)
    assert settings.gateway.port == 9002
    assert settings.gateway.strangers is False
    assert settings.origins["gateway.port"] == "environment CARNET__GATEWAY__PORT"


def test_an_agent_of_the_file_can_be_changed_by_the_environment(tmp_path: Path) -> None:
    text = '[agents."bridge/x"]\ntarget = "agents:echo"\n'
    settings = loaded(tmp_path, text, {"CARNET__AGENTS__BRIDGE_X__PRICE": "0.5"})
    assert settings.agents["bridge/x"].price == 500_000


@pytest.mark.parametrize("value", ['["10.0.0.0/8", "a.example:1"]', "10.0.0.0/8, a.example:1"])
def test_a_list_in_the_environment_is_toml_or_has_commas(tmp_path: Path, value: str) -> None:
    settings = loaded(tmp_path, "", {"CARNET__EGRESS__ALLOW": value})
    assert settings.egress.allow == ("10.0.0.0/8", "a.example:1")


def test_a_secret_reference_can_come_from_the_environment(tmp_path: Path) -> None:
    env = {"CARNET__AGENTS__ECHO__API_KEY": '{env = "KEY"}'}
    assert loaded(tmp_path, ECHO, env).agents["echo"].api_key == SecretRef(env="KEY")


def test_the_bridge_variable_has_the_last_word_on_depth(tmp_path: Path) -> None:
    env = {"CLI_BRIDGE_MAX_DEPTH": "7", "CARNET__GATEWAY__MAX_DEPTH": "6"}
    settings = loaded(tmp_path, "[gateway]\nmax_depth = 5\n", env)
    assert settings.gateway.max_depth == 7
    assert settings.origins["gateway.max_depth"] == "environment CLI_BRIDGE_MAX_DEPTH"


@pytest.mark.parametrize("value", ["", "0", "-1", " 4", "4 ", "1_0", "٣", "4.0", "four", "0x4"])
def test_a_malformed_bridge_variable_is_refused(tmp_path: Path, value: str) -> None:
    message = refusal(tmp_path, "", {"CLI_BRIDGE_MAX_DEPTH": value})
    assert message.startswith("gateway.max_depth: should be a whole number from 1")
    assert message.endswith("(environment CLI_BRIDGE_MAX_DEPTH).")


def test_an_unknown_variable_is_refused_with_the_nearest(tmp_path: Path) -> None:
    message = refusal(tmp_path, "", {"CARNET__GATEWAY__PROT": "1"})
    assert message.startswith("CARNET__GATEWAY__PROT: ")
    assert "Did you mean 'CARNET__GATEWAY__PORT'?" in message


def test_variables_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    loaded(tmp_path, "", {"CARNET_URL": "x", "CARNET_TOKEN": "y", "CARNETT__A__B": "z"})


# ----------------------------------------------------------------------------------- origins


def test_every_value_knows_where_it_came_from(tmp_path: Path) -> None:
    text = """\
# a comment
[gateway]
host = "127.0.0.1"
port = 8701

[egress]
allow = [   # spans lines
  "10.0.0.0/8",
]
[agents.echo]
target = "agents:echo"
system = '''
[gateway]
port = 1
'''
price = "1"

[peers."globex.example"]
url = "https://gw.globex.example"
token = {file = "t"}
"""
    origins = loaded(tmp_path, text).origins
    assert origins["gateway.port"] == "carnet.toml:4"
    assert origins["egress.allow"] == "carnet.toml:7"
    assert origins["agents.echo.system"] == "carnet.toml:12"
    assert origins["agents.echo.price"] == "carnet.toml:16"
    assert origins['peers."globex.example".token'] == "carnet.toml:20"
    assert origins["limits.queue"] == "default"


def test_keys_inside_an_inline_table_are_placed_at_its_line(tmp_path: Path) -> None:
    settings = loaded(tmp_path, '\nagents.echo = {target = "agents:echo"}\n')
    assert settings.origins["agents.echo.target"] == "carnet.toml:2"


def test_lines_that_are_no_toml_are_passed_over() -> None:
    assert find_lines("[a\n= 3\n[b..c]\nx = 1\n")[("x",)] == 4


# --------------------------------------------------------------------------- what is refused


def test_an_unknown_key_is_refused_with_file_and_nearest_key(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[gateway]\n\nprot = 1\n")
    assert message == "gateway.prot: is no known key (carnet.toml:3). Did you mean 'port'?"


def test_an_unknown_section_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[gatway]\nport = 1\n")
    assert message == "gatway: is no known section (carnet.toml:1). Did you mean 'gateway'?"


def test_an_unknown_key_without_a_near_one_lists_the_known(tmp_path: Path) -> None:
    assert "Known here: currency." in refusal(tmp_path, "[ledger]\nzzz = 1\n")


def test_a_wrong_type_names_key_expectation_and_origin(tmp_path: Path) -> None:
    message = refusal(tmp_path, '[gateway]\nport = "eighty"\n')
    assert message == (
        "gateway.port: should be a whole number from 0 to 65535, but is 'eighty' (carnet.toml:2)."
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[gateway]\nport = true\n", "whole number"),
        ("[gateway]\nport = 70000\n", "to 65535"),
        ("[gateway]\nhost = 1\n", "not text"),
        ('[gateway]\nhost = " "\n', "not blank"),
        ('[gateway]\nstrangers = "false"\n', "without quotes"),
        ('[gateway]\ndomain = "Acme.Example"\n', "lower-case DNS name"),
        ('[gateway]\ndomain = "localhost"\n', "two or more labels"),
        ('[gateway]\npublic_url = "ftp://x"\n', "http or https URL"),
        ('[gateway]\npublic_url = "http://u:p@x"\n', "holds a credential"),
        ('[gateway]\ncors_origins = "https://a.example"\n', "a list of origins"),
        ('[gateway]\ncors_origins = ["https://a.example/"]\n', "holds 'https://a.example/'"),
        ('[gateway]\ncors_origins = ["https://a.example:443"]\n', "a.example:443'"),
        ('[gateway]\ncors_origins = ["a.example"]\n', "origins of pages"),
        ('[gateway]\ncors_origins = ["https://*.example"]\n', "origins of pages"),
        ('[gateway]\ntrusted_proxies = "10.0.0.1"\n', "a list of addresses or ranges"),
        ('[gateway]\ntrusted_proxies = ["proxy.example"]\n', "holds 'proxy.example'"),
        ('[gateway]\ntrusted_proxies = ["10.0.0.1/8"]\n', "holds '10.0.0.1/8'"),
        ("[gateway]\ndrain_seconds = 0\n", "above 0"),
        ("gateway = 3\n", "should be a section"),
        ('[store]\nurl = "mysql:x"\n', "sqlite:PATH"),
        ('[store]\nurl = "sqlite:"\n', "sqlite:PATH"),
        ('[store]\nsecrets = {env = "X"}\n', "keeps its own keys there"),
        ('[egress]\nallow = ["nonsense"]\n', "holds 'nonsense'"),
        ('[egress]\nallow = "10.0.0.1"\n', "a list of"),
        ("[limits]\nfan_out = 3\n", "is no known key"),
        ("[limits]\nretries = 9\n", "from 0 to 3"),
        ("[retention]\nturns = 0\n", "from 1"),
        ('[retention]\nevery = "8d"\n', "from 1m to 7d"),
        ('[retention]\nevery = "0h"\n', "or never"),
        ("[retention]\nevery = 3600\n", "not text"),
        ('[peers."globex.example"]\n', "url: is needed"),
        ('[peers.globex]\nurl = "http://x"\n', "no peer's domain"),
        ('[peers."g.example"]\nurl = "http://x"\ndialect = "engine_chat"\n', "later release"),
        (
            '[peers."g.example"]\nurl = "http://x"\nsignature_form = "x"\n',
            "auto, samvad, rfc9421, carnet",
        ),
        (f'[peers."g.example"]\nurl = "http://x"\nkeys = ["{"A" * 43}="]\n', "32 bytes"),
        ('[agents.x]\nkind = "samvad"\n', "needs 'url'"),
        ('[agents.x]\nidentity = "globex.example"\n', "agent://globex.example"),
        ('[peers."g.example"]\nurl = "http://x"\nkeys = ["AAAA"]\n', "32 bytes"),
        ('[peers."g.example"]\nurl = "http://x"\nkeys = ["!"]\n', "base64"),
        ('[peers."g.example"]\nurl = "http://x"\ncredit = 100\n', "as text"),
        ("[agents.echo]\n", "needs 'target'"),
        ('[agents.echo]\ntarget = "agents.echo"\n', "module:function"),
        ('[agents.gpt]\nkind = "openai"\n', "needs 'url'"),
        ('[agents.far]\nkind = "tangle"\n', "needs 'url'"),
        ('[agents."a b"]\ntarget = "agents:echo"\n', "no name for an agent"),
        ('[agents."a/ b"]\ntarget = "agents:echo"\n', "visible ASCII"),
        (ECHO + 'price = "0.00000001"\n', "at most six decimals"),
        (ECHO + "retries = 4\n", "from 0 to 3"),
        (ECHO + 'trust = "everyone"\n', "one of public, authenticated"),
        (ECHO + "timeout = 0\n", "number of seconds"),
        ("[gateway\n", "not valid TOML"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(
    tmp_path: Path, text: str, part: str
) -> None:
    assert part in refusal(tmp_path, text)


def test_an_agent_of_another_kind_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    message = refusal(tmp_path, '[agents.x]\nkind = "a2b"\n')
    assert "python, openai, tangle, samvad, a2a" in message


def test_an_a2a_agent_is_somewhere(tmp_path: Path) -> None:
    message = refusal(tmp_path, '[agents.x]\nkind = "a2a"\n')
    assert "an agent of kind a2a needs 'url'" in message


def test_a_path_name_may_not_be_endless(tmp_path: Path) -> None:
    message = refusal(tmp_path, f'[agents."a/{"x" * 300}"]\ntarget = "agents:echo"\n')
    assert "at most 200" in message


def test_retries_of_an_agent_stay_within_the_limit(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[limits]\nretries = 1\n" + ECHO + "retries = 2\n")
    assert message == "agents.echo.retries: is above [limits] retries = 1 (carnet.toml:5)."


def test_at_most_one_agent_is_the_default(tmp_path: Path) -> None:
    text = ECHO + 'default = true\n[agents.b]\ntarget = "agents:b"\ndefault = true\n'
    assert "'echo' and 'b' are both the default" in refusal(tmp_path, text)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        load(tmp_path / "nowhere.toml", {})
    assert "no such file" in caught.value.safe_text
    assert "carnet init" in caught.value.safe_text


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "carnet.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigInvalid, match="UTF-8"):
        load(path, {})


# ----------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    ("text", "env"),
    [
        (ECHO + 'api_key = "sk-very-secret"\n', {}),
        ('[peers."g.example"]\nurl = "http://x"\ntoken = "sk-very-secret"\n', {}),
        (ECHO, {"CARNET__AGENTS__ECHO__API_KEY": "sk-very-secret"}),
    ],
)
def test_a_literal_secret_is_refused_with_the_fix_and_not_repeated(
    tmp_path: Path, text: str, env: dict[str, str]
) -> None:
    message = refusal(tmp_path, text, env)
    assert "sk-very-secret" not in message
    assert '{file = "' in message
    assert '{env = "' in message


@pytest.mark.parametrize(
    "value", ['{env = "A", file = "b"}', "{}", "{env = 3}", '{vault = "x"}', "3", '{env = ""}']
)
def test_a_reference_names_one_place(tmp_path: Path, value: str) -> None:
    assert "should be a reference" in refusal(tmp_path, ECHO + f"api_key = {value}\n")


def test_a_broken_reference_in_the_environment_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, ECHO, {"CARNET__AGENTS__ECHO__API_KEY": "{env"})
    assert "should be a reference" in message


def test_a_secret_is_opened_from_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    secret = resolve_secret(SecretRef(file="key"), tmp_path)
    assert secret.reveal() == "s3cret"
    assert "s3cret" not in f"{secret} {secret!r}"


def test_a_secret_is_opened_from_the_environment(tmp_path: Path) -> None:
    assert resolve_secret(SecretRef(env="K"), tmp_path, env={"K": "v"}).reveal() == "v"


def test_a_secret_that_is_not_there_is_refused_by_its_key(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "lines").write_text("a\nb\n")
    (tmp_path / "huge").write_text("x" * 70_000)
    refs = [
        SecretRef(env="NOT_SET"),
        SecretRef(file="nowhere"),
        SecretRef(file="empty"),
        SecretRef(file="lines"),
        SecretRef(file="huge"),
    ]
    for ref in refs:
        with pytest.raises(ConfigInvalid, match=r"agents\.x\.api_key"):
            resolve_secret(ref, tmp_path, key="agents.x.api_key", env={})


def test_a_reference_is_written_as_in_toml() -> None:
    assert str(SecretRef(env="A")) == '{env = "A"}'
    assert str(SecretRef(file="b")) == '{file = "b"}'


def test_values_are_frozen() -> None:
    with pytest.raises(AttributeError):
        AgentSettings().price = 3  # type: ignore[misc]
