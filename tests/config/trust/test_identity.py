"""The lists of those whose word about identities counts."""

import pytest

from carnet.config.readers import Wrong
from carnet.config.trust.identity import federated

RULE = {"issuer": "did:web:h.example:a", "methods": ["urn:x"], "subjects": ["slack:*"]}


def test_one_issuer_may_have_several_rules() -> None:
    assert len(federated().read([RULE, {**RULE, "subjects": ["irc:*"]}])) == 2


def test_two_issuers_of_one_host_are_refused_since_their_users_would_be_the_same_callers() -> None:
    with pytest.raises(Wrong, match="two issuers of one host"):
        federated().read([RULE, {**RULE, "issuer": "did:web:h.example:b"}])
