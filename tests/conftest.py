"""What every test shares: how hypothesis searches. Fixtures live beside the tests that use them."""

from hypothesis import settings

# The same examples on every run, and no verdict by the wall clock: a failure here is a fact about
# the code. `pytest --hypothesis-profile=explore` looks further.
settings.register_profile("carnet", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("carnet")
