"""From `[models]` to what loops and agents ask, each with those that are asked in its place."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from carnet.assembly.agents.peers import bounds_of
from carnet.config import ModelSettings, Settings, resolve_secret
from carnet.config.sources import dotted
from carnet.engine.schema.tools import SchemaTools
from carnet.ports.engine.model import LanguageModel
from carnet.ports.world.clock import Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.chat_model import ChatModel
from carnet.runtime.agents.model_chain import ModelChain, NamedModel
from carnet.runtime.agents.remote import RemoteEndpoint
from carnet.wire.dialects.openai import COMPLETIONS, MODEL


class ModelKind(Struct, frozen=True, kw_only=True, eq=False):
    """How the models of one kind are asked."""

    path: str  # after the URL of the provider


KINDS: Final[Mapping[str, ModelKind]] = {"openai": ModelKind(path=COMPLETIONS)}


def build_models(settings: Settings, http: HttpClient, ids: Ids) -> dict[str, LanguageModel]:
    """All of them, by their names."""
    return {name: build_model(settings, name, http, ids) for name in settings.models}


def build_model(settings: Settings, name: str, http: HttpClient, ids: Ids) -> LanguageModel:
    """One of them, and its fallbacks behind it."""
    names = (name, *settings.models[name].fallbacks)
    models = [NamedModel(each, _single(settings, each, http, ids.fraction)) for each in names]
    return ModelChain(models) if len(models) > 1 else models[0].model


def _single(
    settings: Settings, name: str, http: HttpClient, fraction: Callable[[], float]
) -> LanguageModel:
    model = settings.models[name]
    endpoint = _endpoint(settings, name, model)
    asked = ChatModel(http, endpoint, retries=model.retries, fraction=fraction)
    return SchemaTools(asked) if model.tool_calls == "schema" else asked


def _endpoint(settings: Settings, name: str, model: ModelSettings) -> RemoteEndpoint:
    key, token = dotted(("models", name, "api_key")), None
    if model.api_key is not None:
        token = resolve_secret(model.api_key, settings.base, key=key)
    return RemoteEndpoint(
        url=model.url.rstrip("/") + KINDS[model.kind].path,
        model=model.model or name,
        token=token,
        currency=settings.ledger.currency,
        bounds=bounds_of(model.timeout),
        codec=MODEL,
    )
