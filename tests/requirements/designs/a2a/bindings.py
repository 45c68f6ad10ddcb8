"""A2A 1.0, sections 5.1 to 5.4, 5.8 and 9 to 12: JSON-RPC and HTTP+JSON, and no other bindings.

What sections 10 and 12 ask of gRPC and of bindings that somebody made is asked of those who offer
them. Carnet offers neither, and its cards name neither.
"""

from tests.requirements.designs.a2a.proof import at_client, at_server
from tests.requirements.rows import Row

_WRITER = "tests/wire/dialects/a2a/card/test_writer.py::"
_SDK = "tests/interop/a2a_card/test_sdk.py::"

_BOTH = (
    at_server("bind-equiv-001", "Both bindings have all operations.", "5.1"),
    at_server("bind-equiv-002", "The same request has the same result in both.", "5.1"),
    at_server("bind-equiv-003", "The same error is told in both, each in its codes.", "5.1"),
    at_server("bind-equiv-004", "Both take the same credentials.", "5.1"),
    Row(
        "a2a:bind-field-001",
        "The card declares every protocol that is spoken.",
        "A2A 1.0, 5.2",
        (
            _WRITER + "test_both_bindings_are_named_for_both_versions_the_newest_first",
            _SDK + "test_the_sdk_reads_and_verifies_our_card",
        ),
    ),
    Row(
        "a2a:bind:no-other",
        "gRPC and bindings of others are offered only by who declares them: we do not.",
        "A2A 1.0, 10, 12",
        (_SDK + "test_the_sdk_reads_and_verifies_our_card",),
    ),
    at_client(
        "bind:choice",
        "A client may choose any binding of the card, and falls back to another one.",
        "5.2",
    ),
    at_server("bind:errors", "Each error has its code in each binding.", "5.4"),
)

_JSON_RPC = (
    at_server("jsonrpc-fmt-001", "A request is one of JSON-RPC 2.0.", "9.1, 9.3"),
    at_server("jsonrpc-fmt-002", "Requests and answers are application/json.", "9.1"),
    at_server("jsonrpc-svc-001", "Methods have the names of the definition.", "9.1"),
    at_server(
        "jsonrpc-svc-002",
        "Service parameters are headers, in any case, with several values behind commas.",
        "9.2",
    ),
    at_server("jsonrpc-err-001", "An error has a code, a message and a list of data.", "9.5"),
    at_server("jsonrpc-err-002", "Codes of the protocol are -32001 to -32099.", "9.5"),
    at_server("jsonrpc-err-003", "Their data has an ErrorInfo with reason and domain.", "9.5"),
    at_server("jsonrpc-sse-001", "A stream is server-sent events, each a response.", "9.4.2"),
    at_server("jsonrpc-sse-002", "Each error has the code of the table.", "5.4"),
)

_HTTP = (
    at_server("http-json-url-001", "Each operation has its path.", "11.3"),
    at_server("http-json-url-002", "And its method.", "11.3"),
    at_server(
        "http-json-svc-001",
        "Requests and answers are application/a2a+json, or application/json for who asks for that.",
        "11.1",
    ),
    at_server("http-json-svc-002", "Service parameters are headers.", "11.2"),
    at_server(
        "http-json-qp-001",
        "Without a body parameters stand in the path and the query, in camelCase and encoded.",
        "11.5",
    ),
    at_server(
        "http-json-qp-types",
        "Booleans, numbers, enums, times and repeated fields have their spelling in a query.",
        "11.5",
    ),
    at_server(
        "http-json-err-001",
        "An error has code, status, message and details, each of which names its type.",
        "11.6",
    ),
    at_server(
        "http-json-err-002",
        "An error of the protocol has an ErrorInfo with reason and domain.",
        "11.6",
    ),
    at_server("http-json-status-001", "Each error has the status of the table.", "5.4"),
    at_server("http-json-sse-001", "A stream is server-sent events, each an event.", "11.7"),
)

ROWS = (*_BOTH, *_JSON_RPC, *_HTTP)
