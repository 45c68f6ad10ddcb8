"""The directory of an organisation."""

from carnet.wire.mentions.directory import DirectoryEntry, write_directory


def test_each_agent_is_a_contact_point_of_the_organisation() -> None:
    foo = DirectoryEntry(
        name="foo", address="@foo@bar.test", description="Foo.", card="https://bar.test/c"
    )
    page = write_directory("bar.test", "https://bar.test", [foo])
    assert (page["@context"], page["@type"]) == ("https://schema.org", "Organization")
    assert page["contactPoint"] == [
        {
            "@type": "ContactPoint",
            "contactType": "agent",
            "name": "foo",
            "identifier": "@foo@bar.test",
            "description": "Foo.",
            "url": "https://bar.test/c",
        }
    ]
