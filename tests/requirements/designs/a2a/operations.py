"""A2A 1.0, section 3: what is sent, asked, listed, cancelled; errors; contexts, tasks, versions."""

from tests.requirements.designs.a2a.proof import at_client, at_server

_SEND = (
    at_server(
        "core-send-001",
        "A sent message is answered with a task or a message, without more delay than was asked "
        "for.",
        "3.1.1",
    ),
    at_server("send:task-or-message", "An agent may answer either way.", "3.1.1"),
    at_server(
        "send:goes-on",
        "A task that was returned may go on after the answer.",
        "3.1.1",
    ),
    at_server(
        "core-send-002",
        "A message to a task that has ended is an unsupported operation, sent or streamed.",
        "3.1.1, 3.1.2",
    ),
    at_server(
        "core-send-003",
        "A part of a media type that the agent does not take is refused as such.",
        "3.1.1, 3.1.2",
    ),
    at_server(
        "core-execution-mode-001",
        "Without `returnImmediately` the answer waits until the task has ended or waits for "
        "somebody, and holds all of its artifacts.",
        "3.2.2",
    ),
    at_server(
        "core-execution-mode-002",
        "With `returnImmediately` the task is answered as soon as it exists.",
        "3.2.2",
    ),
    at_server(
        "send:mode-elsewhere",
        "`returnImmediately` changes nothing about messages, streams and notifications.",
        "3.2.2",
    ),
    at_server(
        "send:idempotent",
        "The same `messageId` again may be the same message.",
        "3.3.1",
    ),
)

_GET = (
    at_server(
        "core-get-001",
        "Asking for a task gives its state, its artifacts and, if wanted, its history.",
        "3.1.3",
    ),
    at_server(
        "core-get-002",
        "A task that is not there, or not the caller's, is not found.",
        "3.1.3",
    ),
    at_server("get:idempotent", "Asking changes nothing.", "3.3.1"),
)

_LIST = (
    at_server("core-list-001", "The tasks of the caller are listed, and no others.", "3.1.4"),
    at_server("core-list-002", "Pages follow one another by a cursor.", "3.1.4"),
    at_server(
        "core-list-003",
        "The task whose status changed last comes first.",
        "3.1.4",
    ),
    at_server(
        "core-list-004",
        "`nextPageToken` is always there, and empty on the last page.",
        "3.1.4",
    ),
    at_server(
        "core-list-005",
        "Artifacts are left out altogether unless they are asked for.",
        "3.1.4",
    ),
    at_server(
        "list:with-artifacts",
        "Asked for, they are there as they are, also where there are none.",
        "3.1.4",
    ),
    at_server(
        "list:page-size",
        "A page has 50 tasks unless another number from 1 to 100 is wanted, and the answer tells "
        "the size of the page and of the whole list.",
        "ListTasksRequest, ListTasksResponse",
    ),
    at_server(
        "list:filters",
        "A context, a state and the time of the last change choose among them; a task of exactly "
        "that time is one of them.",
        "ListTasksRequest",
    ),
)

_CANCEL = (
    at_server(
        "core-cancel-001",
        "Cancelling gives the task as it is then.",
        "3.1.5",
    ),
    at_server(
        "core-cancel-002",
        "A task that has ended cannot be cancelled, and that is told.",
        "3.1.5",
    ),
    at_server("core-cancel-003", "A task that is not there is not found.", "3.1.5"),
    at_server(
        "cancel:idempotent",
        "Cancelling twice has the effect of once; one that was forgotten since may be not found.",
        "3.3.1",
    ),
)

_HISTORY = (
    at_server(
        "core-hist-001",
        "A history of 0 messages is left out of a task that is asked for.",
        "3.2.4",
    ),
    at_server(
        "core-hist-002",
        "No more messages are given than were asked for; fewer may be.",
        "3.2.4",
    ),
    at_server(
        "core-hist-003",
        "A history of 0 messages is left out of the answer to a message.",
        "3.2.4",
    ),
    at_server("core-hist-004", "Messages may be kept in the history.", "3.2.4, 3.7"),
    at_server("core-hist-005", "The history is in the order of the exchange.", "3.7"),
    at_server("core-hist-006", "What it holds is what was exchanged.", "3.7"),
    at_server(
        "history:unset",
        "Without a wish the history is as long as the server likes.",
        "3.2.4",
    ),
    at_client(
        "history:not-relied-on",
        "A client does not rely on messages that are not artifacts: they may be lost.",
        "3.7",
    ),
    at_server(
        "messages:not-results",
        "Results are artifacts of a task, not messages.",
        "3.7",
    ),
)

_ERRORS = (
    at_server(
        "core-err-001",
        "A refusal is of the right kind and says what can be done.",
        "3.3.2",
    ),
    at_server("core-err-002", "All parameters are judged before anything is done.", "3.3.2"),
    at_server(
        "err:authentication",
        "A request without a credential that holds is refused, with a challenge that names the "
        "scheme.",
        "3.3.2, 7.4",
    ),
    at_server(
        "err:authorization",
        "Who may not is told so, and which permission is missing, without a word about what it "
        "may not see.",
        "3.3.2",
    ),
    at_server(
        "auth-scope-003",
        "What a caller may not see is told like what is not there.",
        "3.3.2",
    ),
    at_server(
        "err:validation",
        "A refusal of a parameter names it and what it should be.",
        "3.3.2",
    ),
    at_server(
        "err:system",
        "A fault that passes is told apart from one that stays, may say when to come again, and "
        "is logged.",
        "3.3.2",
    ),
    at_server(
        "err:payload",
        "Every error has a code, a message and details, each of which names its type; well-known "
        "types are used.",
        "3.3.2",
    ),
)

_CAPABILITIES = (
    at_server(
        "core-cap-001",
        "An agent that does not declare notifications refuses their operations as unsupported.",
        "3.3.4",
    ),
    at_server(
        "core-cap-002",
        "One that does not declare streams refuses them.",
        "3.3.4",
    ),
    at_server(
        "core-cap-003",
        "One that does not declare an extended card refuses to give one.",
        "3.3.4, 13.3",
    ),
    at_server(
        "core-cap-004",
        "Who does not declare an extension that the card requires is refused as such.",
        "3.3.4",
    ),
    at_client(
        "cap:validate",
        "A client looks at the card before it uses what is optional.",
        "3.3.4",
    ),
)

_TURNS = (
    at_server("core-multi-001", "A message without a context may be given one.", "3.4.1"),
    at_server("core-multi-001a", "It is told in the answer.", "3.4.1"),
    at_server("core-multi-002", "A context of the client's may be taken.", "3.4.1"),
    at_server(
        "core-multi-002a",
        "One that is not taken is refused, and not replaced.",
        "3.4.1",
    ),
    at_client(
        "context:opaque",
        "A client does not make contexts up, and reads nothing into those it is given.",
        "3.4.1",
    ),
    at_server(
        "context:one-session",
        "What shares a context is one session, on which an agent may draw.",
        "3.4.1, 3.4.3",
    ),
    at_server(
        "context:expiry",
        "Contexts may end; when is written down.",
        "3.4.1",
    ),
    at_server(
        "core-multi-003",
        "Each new task has an id of its own, which the server makes and tells.",
        "3.4.2",
    ),
    at_server(
        "core-multi-004",
        "A message to a task that is not there is not found: a client makes no ids of tasks.",
        "3.4.2",
    ),
    at_server(
        "core-multi-005",
        "A message to a task belongs to its context.",
        "3.4.3",
    ),
    at_server(
        "core-multi-006",
        "One that names another context than its task's is refused.",
        "3.4.3",
    ),
    at_client(
        "turns:continue",
        "A client may go on with a context, with a task, or begin a new task in a context.",
        "3.4.3",
    ),
    at_server(
        "turns:references",
        "Tasks that a message refers to are used to understand it.",
        "3.4.3",
    ),
    at_server(
        "turns:more-messages",
        "A task that has not ended may be sent more messages.",
        "3.3.3",
    ),
)

_VERSIONS = (
    at_client(
        "ver-client-001",
        "A client sends `A2A-Version` with every request, as a header or a parameter.",
        "3.6.1",
    ),
    at_client(
        "ver-client-002",
        "A patch version is not written, and counts for nothing.",
        "3.6",
    ),
    at_server(
        "ver-server-001",
        "A request is answered by the rules of the version that it names.",
        "3.6.2",
    ),
    at_server("ver-server-002", "A version that is not spoken is refused as such.", "3.6.2"),
    at_server("ver-server-003", "No version means 0.3.", "3.6.2"),
    at_client(
        "ver:tooling",
        "A client can be told which binding and version it is to use.",
        "3.6.3",
    ),
    at_server(
        "parameters:names",
        "What belongs to the protocol and not to an operation has a name that begins with `a2a-`, "
        "in any case.",
        "3.2.6",
    ),
)

ROWS = (
    *_SEND,
    *_GET,
    *_LIST,
    *_CANCEL,
    *_HISTORY,
    *_ERRORS,
    *_CAPABILITIES,
    *_TURNS,
    *_VERSIONS,
)
