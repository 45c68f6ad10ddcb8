"""A2A 1.0, sections 4 and 5.5 to 5.7: the data, how it is written, and extensions of it."""

from tests.requirements.designs.a2a.proof import at_server

_DATA = (
    at_server("dm-task-001", "A task has an id and a status.", "4.1.1"),
    at_server("dm-task-002", "A state is one of the eight that there are.", "4.1.3"),
    at_server("dm-status-001", "A status has a state.", "4.1.2"),
    at_server("dm-msg-001", "A message has an id, a role and parts.", "4.1.4"),
    at_server("dm-msg-002", "A role is the user's or the agent's.", "4.1.5"),
    at_server(
        "dm-part-001",
        "A part is exactly one of text, raw bytes, a URL and data.",
        "4.1.6",
    ),
    at_server("dm-art-001", "An artifact has an id and parts.", "4.1.7"),
    at_server(
        "dm-equivalent",
        "Every binding shows the same structures.",
        "4",
    ),
)

_WRITTEN = (
    at_server("dm-serial-001", "Names of fields are in camelCase.", "5.5"),
    at_server("dm-serial-002", "Values of enums are their names in the definition.", "5.5"),
    at_server(
        "dm-serial-003",
        "Times are ISO 8601 in UTC with a Z, with milliseconds where they are known.",
        "5.6.1",
    ),
    at_server(
        "dm-serial-004",
        "Required fields are there, required lists are not empty, and what lacks them is refused.",
        "5.7",
    ),
    at_server("dm-serial-005", "Fields that nobody knows are passed over.", "5.7"),
    at_server(
        "dm-optional",
        "An optional field that was left out has the default that the text says.",
        "5.7",
    ),
)

_EXTENSIONS = (
    at_server(
        "ext:version",
        "The URI of an extension says its version, and a breaking change is a new URI.",
        "4.6.3",
    ),
    at_server(
        "ext:unknown",
        "A version that is not known is passed over, unless the card requires the extension.",
        "4.6.3",
    ),
    at_server(
        "ext:no-fallback",
        "It is not replaced by an older one.",
        "4.6.3",
    ),
)

ROWS = (*_DATA, *_WRITTEN, *_EXTENSIONS)
