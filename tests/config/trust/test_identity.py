"""The lists of those whose word about identities counts."""

import pytest

from carnet.config.readers import Wrong
from carnet.config.trust.identity import (
    IdentitySettings,
    OAuthIssuerSettings,
    federated,
    same_issuers,
)

RULE = {"issuer": "did:web:h.example:a", "methods": ["urn:x"], "subjects": ["slack:*"]}


def test_one_issuer_may_have_several_rules() -> None:
    assert len(federated().read([RULE, {**RULE, "subjects": ["irc:*"]}])) == 2


def test_two_issuers_of_one_host_are_refused_since_their_users_would_be_the_same_callers() -> None:
    with pytest.raises(Wrong, match="two issuers of one host"):
        federated().read([RULE, {**RULE, "issuer": "did:web:h.example:b"}])


@pytest.mark.parametrize(
    ("issuers", "same"),
    [
        (["https://login.example/realms/a", "https://login.example/realms/b"], None),
        (["https://login.example", "https://login.example/realms/b"], None),
        (["https://login.example", "https://login.example/"], "login.example"),
        (["https://login.example/a", "http://login.example/a"], "login.example/a"),
        (["https://h.example"], "h.example"),  # which a connector has
        (["https://acme.example"], "acme.example"),  # which we have
        (["https://acme.example/sign-in"], None),
    ],
)
def test_names_that_two_issuers_would_have_in_records_are_found(
    issuers: list[str], same: str | None
) -> None:
    oauth = tuple([OAuthIssuerSettings(issuer=each, jwks_url="x") for each in issuers])
    identity = IdentitySettings(oauth=oauth, federation=federated().read([RULE]))
    assert same_issuers(identity, "acme.example") == same
