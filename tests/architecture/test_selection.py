"""Each file of tests of gateways is played over one store, and over both where asked to."""

from tests.selection import STORES, chosen, elsewhere, is_left_out

FILE = "tests/gateway/test_runs.py"
OWN, OTHER = chosen(FILE), next(store for store in STORES if store != chosen(FILE))
BOTH = frozenset(f"{FILE}::test_it[{store}-1]" for store in STORES)


def test_a_file_has_one_store_and_both_stores_have_files() -> None:
    files = [f"tests/gateway/test_{n}.py" for n in range(100)]
    counts = [[chosen(file) for file in files].count(store) for store in STORES]
    assert sum(counts) == 100
    assert min(counts) > 30


def test_a_test_is_known_by_its_id_on_the_other_store() -> None:
    here, there = sorted(BOTH)
    assert elsewhere(here, {"acme": "postgres", "n": 1}) == there
    assert elsewhere(f"{FILE}::test_it[1]", {"n": 1}) is None


def test_what_runs_on_the_other_store_is_left_out() -> None:
    assert is_left_out(f"{FILE}::test_it[{OTHER}-1]", {"acme": OTHER, "n": 1}, BOTH)
    assert not is_left_out(f"{FILE}::test_it[{OWN}-1]", {"acme": OWN, "n": 1}, BOTH)


def test_what_is_about_one_store_alone_always_runs() -> None:
    assert not is_left_out(f"{FILE}::test_it[{OTHER}-1]", {"acme": OTHER}, frozenset())
    assert not is_left_out(f"{FILE}::test_it", {}, BOTH)


def test_the_stores_own_tests_always_run_over_both() -> None:
    both = frozenset(f"tests/stores/test_copy.py::test_it[{store}]" for store in STORES)
    for test in both:
        assert not is_left_out(test, {"driver": test.rpartition("[")[2][:-1]}, both)
