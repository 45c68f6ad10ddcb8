"""The body of an answer, out of its binding and its version.

Law. Whatever the binding and the version, what comes out is what 1.0 calls it, and an error is
raised as one of ours.
"""

from collections.abc import Callable
from typing import Final

from carnet.errors import InvalidJson, ProviderError
from carnet.wire.dialects.a2a.client import legacy
from carnet.wire.dialects.a2a.client.interface import JSON_RPC, Interface
from carnet.wire.dialects.a2a.client.reports import read_error
from carnet.wire.dialects.a2a.client.request import REQUEST_ID
from carnet.wire.grammar import json

MOST_LEVELS: Final = 64
_EMPTY: Final = "DeleteTaskPushNotificationConfig"  # which has none


def read_result(interface: Interface, operation: str, body: bytes) -> object:
    """What an operation was answered with; an error is raised."""
    if interface.binding != JSON_RPC and not body:  # of a deletion
        return {}
    try:
        page = json.read_object(body, max_levels=MOST_LEVELS)
    except InvalidJson as error:
        raise ProviderError(f"the answer is no JSON: {error.facts['reason']}") from None
    return _modern(interface, operation, _unwrapped(interface, operation, page))


def _unwrapped(interface: Interface, operation: str, page: dict[str, object]) -> object:
    if interface.binding != JSON_RPC:
        if "error" in page and isinstance(page["error"], dict) and "code" in page["error"]:
            raise read_error(page["error"])
        return page
    if page.get("jsonrpc") != "2.0":
        raise ProviderError("the answer is not one of JSON-RPC 2.0")
    if page.get("error") is not None:
        raise read_error(page["error"])
    if page.get("id") != REQUEST_ID:
        raise ProviderError("the answer is that to another request")
    if "result" not in page and operation != _EMPTY:
        raise ProviderError("the answer has no result")
    return page.get("result")


def _modern(interface: Interface, operation: str, result: object) -> object:
    if not interface.is_legacy:
        return result
    return _MODERN.get(operation, _as_it_is)(result)


def _configs(given: object) -> object:
    return [legacy.as_config(each) for each in given] if isinstance(given, list) else given


def _as_it_is(given: object) -> object:
    return given


_MODERN: Final[dict[str, Callable[[object], object]]] = {
    **dict.fromkeys(("SendMessage", "SendStreamingMessage", "SubscribeToTask"), legacy.as_update),
    **dict.fromkeys(("GetTask", "CancelTask"), legacy.as_task),
    **dict.fromkeys(
        ("CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"), legacy.as_config
    ),
    "ListTaskPushNotificationConfigs": _configs,
}
