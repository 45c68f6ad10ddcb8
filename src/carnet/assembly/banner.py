"""What a person sees when a gateway is up: where it is, and a line to paste that works.

Law. The line is for the default agent, whatever that is: what chats is asked over HTTP; what has
     skills alone is called with one of them, and with what its schema needs.
"""

from collections.abc import Callable, Sequence
from shlex import join, quote
from typing import Any, Final

import msgspec

from carnet.config import Settings
from carnet.config.settings import local_url
from carnet.core.call import Target
from carnet.core.people.identity import CHAT, Skill

MOST_LEVELS: Final = 4  # of an example; what is deeper is left empty
_TEXTS: Final = {
    "date": "2027-01-15",
    "date-time": "2027-01-15T08:00:00Z",
    "email": "somebody@acme.example",
    "uri": "https://acme.example/",
}

HIDDEN: Final = (
    "  others   reach it at no address that we know: its cards say {url}, which is this machine.\n"
    "           Write where it is reached: [gateway] public_url\n"
)


def local_address(settings: Settings) -> str:
    """Where the gateway of a configuration is reached from this machine."""
    at = settings.gateway
    return local_url(at.host, at.port)


def shown_address(settings: Settings) -> str:
    """Where people reach it: as its operator says, else where it listens."""
    if settings.origins["gateway.public_url"] != "default":
        return settings.gateway.public_url
    return local_address(settings)


def banner(
    settings: Settings,
    served: Sequence[Target] = (),
    spell: Callable[[str], str] = str,
    sign_in: str = "",
) -> str:
    """What a person sees; `served` are the agents, as far as they are known.

    `sign_in` says how somebody signs in to the console.
    """
    gateway = settings.gateway
    url = shown_address(settings)
    agents = ", ".join(settings.agents) or "none yet: add an [agents.NAME] section"
    hidden = HIDDEN.format(url=url) if settings.needs_public_url else ""
    how = f"           {spell(sign_in)}\n" if sign_in else ""
    name = settings.default_agent or next(iter(settings.agents), "AGENT")
    skills = next((target.skills for target in served if target.name == name), ())
    if skills and CHAT.id not in [skill.id for skill in skills]:
        line = f"  {spell(example_call(name, skills[0]))}\n\n"
    else:
        line = _curl(settings, url, name)
    return (
        f"\nCarnet serves {gateway.domain} at {url}\n"
        f"  agents   {agents}\n"
        f"  config   {settings.source}\n{hidden}"
        f"  console  {url.rstrip('/')}/console/\n{how}"
        f"\nTry it:\n{line}"
    )


def _curl(settings: Settings, url: str, name: str) -> str:
    token = settings.base / "var" / "starter.token"
    credential = f"$(cat {quote(str(token))})" if token.exists() else "$CARNET_TOKEN"
    return (
        f"  curl -i {url}/v1/chat/completions \\\n"
        f'    -H "authorization: Bearer {credential}" \\\n'
        "    -H 'content-type: application/json' \\\n"
        f'    -d \'{{"model": "{name}",'
        ' "messages": [{"role": "user", "content": "hello"}]}\'\n\n'
    )


def example_call(agent: str, skill: Skill) -> str:
    """A command that calls a skill with what its schema needs."""
    schema = skill.input_schema
    given = example(schema, schema)
    words = [_word(name, value) for name, value in given.items()] if type(given) is dict else []
    return join(["carnet", "call", agent, f"skill={skill.id}", *words])


def _word(name: str, value: Any) -> str:
    if isinstance(value, str) and name != "skill":
        return f"{name}={value}"
    return f"{name}:={msgspec.json.encode(value).decode()}"


def example(schema: Any, root: dict[str, Any], level: int = 0) -> Any:
    """A value that a schema takes, as far as that can be told simply."""
    schema = _resolved(schema, root)
    values = [schema[name] for name in ("const", "default") if name in schema]
    values += [schema[name][0] for name in ("examples", "enum") if schema.get(name)]
    others = [schema[name][0] for name in ("anyOf", "oneOf", "allOf") if schema.get(name)]
    if values or level > MOST_LEVELS:
        return values[0] if values else None
    if others:
        return example(others[0], root, level + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        fields = schema.get("properties", {})
        return {n: example(fields.get(n, {}), root, level + 1) for n in schema.get("required", [])}
    if kind == "array":
        few = schema.get("minItems", 0)
        return [example(schema.get("items", {}), root, level + 1)] * min(few, MOST_LEVELS)
    return _plain(kind, schema)


def _plain(kind: str, schema: dict[str, Any]) -> Any:
    if kind in {"integer", "number"}:
        return max(1, schema.get("minimum", 1), schema.get("exclusiveMinimum", 0) + 1)
    if kind == "boolean":
        return True
    text = _TEXTS.get(schema.get("format", ""), "hello")
    return None if kind == "null" else text[: schema.get("maxLength", len(text))]


def _resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    """A schema, or the one of the same document that it refers to."""
    reference = schema.get("$ref", "") if isinstance(schema, dict) else ""
    if not reference.startswith("#/"):
        return schema if isinstance(schema, dict) else {}
    found: Any = root
    for part in reference[2:].split("/"):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return {} if not isinstance(found, dict) or "$ref" in found else found
