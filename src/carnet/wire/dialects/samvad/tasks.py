"""Tasks as they are told to whoever asked for them: accepted, a record, or not found.

Law 1. A record holds what the protocol's schema has and nothing else: `progress` while it runs, a
       `result` when it is done, an `error` of the nine codes when it has failed.
Law 2. What is not known, belongs to another agent or is no longer kept is told with the same bytes.
Law 3. Who asks may prove who it is, in one of the two forms that a request is signed in; the time
       is that of the signature, and the body may be empty. Verifying it takes a key, elsewhere.
"""

from typing import Any, Final

from carnet.core.people.proof import SECOND_US, Asking, Profile
from carnet.errors import CarnetError, SignatureExpired, SignatureInvalid
from carnet.wire.crypto import digests, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.dialects.samvad.claim import KEYID, TAG, bases_of
from carnet.wire.dialects.samvad.refusals import error_object
from carnet.wire.dialects.samvad.task_reports import NOT_FOUND, TaskStatus
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import MINIMUM, Stamps, check_coverage

_WHOLE: Final = (*MINIMUM, "@authority")  # our own profile; an empty body needs no type
_THOUSAND: Final = 1000


def write_accepted(task: str) -> bytes:
    """What is said of a task that was taken on."""
    return json.write({"taskId": task, "status": "accepted"})


def write_record(
    task: str,
    status: TaskStatus,
    *,
    progress: int | None = None,
    result: dict[str, Any] | None = None,
    error: CarnetError | None = None,
) -> bytes:
    """How a task goes; `progress` is in thousandths."""
    record: dict[str, Any] = {"taskId": task, "status": status}
    if status == "running":
        record["progress"] = (progress or 0) / _THOUSAND
    if status == "done":
        record["result"] = result or {}
    if status == "failed" and error is not None:
        record["error"] = error_object(error)
    return json.write(record)


def write_not_found() -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body for a task that there is not, as the SDKs write it."""
    headers = {"content-type": "application/json", "cache-control": "no-store"}
    return 404, headers, json.write({"error": NOT_FOUND})


def read_asking(request: Request, body: bytes, *, short_path: str, stamps: Stamps) -> Asking:
    """The signature of a request about a task. Raises SignatureMissing where there is none.

    Args:
        request: What the signature may cover.
        body: Its body, which may be empty; its digest is covered all the same.
        short_path: The path without the prefix of the agent, which the protocol's clients sign.
        stamps: Whose fields must not stand outside the signature.
    """
    presented = signatures.read(request.headers)
    digests.check(", ".join(request.headers.get_all("content-digest")), body)
    if presented.keyid is None or KEYID.fullmatch(presented.keyid) is None:
        raise SignatureInvalid("the keyid is missing or not one")
    created = presented.created
    if created is None or created < 0:
        raise SignatureInvalid("it does not say when it was created")
    if presented.expires is not None and presented.expires <= created:
        raise SignatureExpired
    profile: Profile = "samvad"
    if presented.tag is None:
        bases = bases_of(presented, request, short_path, stamps)
    elif presented.tag == TAG:
        profile = "carnet"
        has_query = request.query is not None
        check_coverage(
            presented.components, _WHOLE, request.headers, has_query=has_query, stamps=stamps
        )
        bases = (signatures.base(presented, request),)
    else:
        raise SignatureInvalid("the tag is not ours")
    return Asking(
        profile=profile,
        keyid=presented.keyid,
        signature=presented.signature,
        bases=bases,
        at=created * SECOND_US,
        expires=presented.expires,
    )
