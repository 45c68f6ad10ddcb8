"""From `[models]` to what loops and agents ask, each with those that are asked in its place."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from carnet.assembly.agents.peers import bounds_of
from carnet.config import ModelSettings, Settings, resolve_secret
from carnet.config.sources import dotted
from carnet.engine.schema.tools import SchemaTools
from carnet.engine.window import WindowedModel
from carnet.errors import ConfigInvalid, ModelKeyRefused
from carnet.ports.engine.model import LanguageModel
from carnet.ports.world.clock import Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.agents.chat_model import ChatModel
from carnet.runtime.agents.model_chain import ModelChain, NamedModel
from carnet.runtime.agents.remote import AUTHORIZATION, RemoteEndpoint
from carnet.wire.dialects import anthropic, openai
from carnet.wire.dialects.outbound import Codec


class ModelKind(Struct, frozen=True, kw_only=True, eq=False):
    """How the models of one kind are asked."""

    path: str  # after the URL of the provider
    codec: Codec
    key_header: str = AUTHORIZATION
    headers: Mapping[str, str] = {}


KINDS: Final[Mapping[str, ModelKind]] = {
    "openai": ModelKind(path=openai.COMPLETIONS, codec=openai.MODEL),
    "anthropic": ModelKind(
        path=anthropic.MESSAGES,
        codec=anthropic.MODEL,
        key_header=anthropic.KEY_HEADER,
        headers=anthropic.HEADERS,
    ),
}


class LazyModels(Mapping[str, LanguageModel]):
    """All of them by their names, each built when it is first asked for.

    A process needs the keys of those that it asks, and of no others: a loop elsewhere has its own.
    """

    def __init__(self, settings: Settings, http: HttpClient, ids: Ids) -> None:
        self._settings = settings
        self._http = http
        self._ids = ids
        self._built: dict[str, LanguageModel] = {}

    def __getitem__(self, name: str) -> LanguageModel:
        if name not in self._built:
            if name not in self._settings.models:
                raise KeyError(name)
            try:
                self._built[name] = build_model(self._settings, name, self._http, self._ids)
            except ConfigInvalid as error:  # which key is missing is the operator's to know
                raise ModelKeyRefused(error.safe_text) from None
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in self._settings.models

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings.models)

    def __len__(self) -> int:
        return len(self._settings.models)


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
    asked: LanguageModel = ChatModel(
        http, endpoint, retries=model.retries, fraction=fraction, most_tokens=model.max_output
    )
    if model.tool_calls == "schema":
        asked = SchemaTools(asked)
    if model.window is None:
        return asked
    return WindowedModel(
        asked,
        name=name,
        window=model.window,
        max_output=model.max_output,
        sums_up=model.overflow == "summary",
    )


def _endpoint(settings: Settings, name: str, model: ModelSettings) -> RemoteEndpoint:
    kind, key, token = KINDS[model.kind], dotted(("models", name, "api_key")), None
    if model.api_key is not None:
        token = resolve_secret(model.api_key, settings.base, key=key)
    return RemoteEndpoint(
        url=model.url.rstrip("/") + kind.path,
        model=model.model or name,
        token=token,
        currency=settings.ledger.currency,
        bounds=bounds_of(model.timeout),
        codec=kind.codec,
        key_header=kind.key_header,
        headers=kind.headers,
    )
