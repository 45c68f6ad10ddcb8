"""The documents of issuers that are named by where they are (`did:web`)."""

from typing import Protocol

from carnet.wire.identity.did_document import DidDocument


class DidDocuments(Protocol):
    """Finds them."""

    async def find(self, did: str, /, *, again: bool = False) -> DidDocument:
        """The document of a name that is trusted; raises a CarnetError where it cannot be had.

        With `again` it is fetched anew, once for a document: a key may have been added since.
        """
