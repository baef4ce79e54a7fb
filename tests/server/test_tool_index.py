"""Words of texts, and the sum of BM25."""

from __future__ import annotations

import pytest

from funcmcp._server.tool_index import Index, best_matches, count_words, stem, terms_in, words_in

pytestmark = pytest.mark.branches("Words and numbers, without any input or output.")


def index_of(**texts: str) -> Index:
    index = Index()
    for name, text in texts.items():
        index.add(name, count_words([(text, 1)]))
    return index


def search(query: str, *indexes: Index, limit: int = 5) -> list[str]:
    return best_matches(indexes, terms_in(query, 32), limit)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("get_user-name.first", ["get", "user", "nam", "first"]),
        ("getUserName", ["get", "user", "nam", "getusernam"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("What are the users?", ["user"]),
        ("S3 ec2 v2", ["s3", "ec2", "v2"]),
        ("Ｆｕｌｌ", ["full"]),
        ("天气预报", ["天气", "气预", "预报"]),
        ("!?", []),
        ("", []),
    ],
)
def test_a_text_has_the_words_of_its_names(text: str, words: list[str]) -> None:
    assert list(words_in(text)) == words


@pytest.mark.parametrize(
    "forms",
    [
        "order orders ordered ordering",
        "create creates created creating creation",
        "delete deletes deleted deleting deletion",
        "update updates updated updating",
        "query queries querying",
        "plan plans planned planning",
        "add adds added adding",
        "search searches searched searching",
        "box boxes",
        "deploy deploys deployment deployments",
        "address addresses",
        "погода погоду погоды",
        "заказ заказы заказов",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "words", [("status", "statu"), ("bus", "bu"), ("class", "clas"), ("order", "ord"), ("ring", "r")]
)
def test_an_ending_that_belongs_to_the_word_stays(words: tuple[str, str]) -> None:
    assert stem(words[0]) != words[1]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    index = index_of(a="list orders", b="list users", c="list menus", d="users")
    assert search("list users", index) == ["b", "d", "a", "c"]


def test_a_short_text_precedes_a_long_one() -> None:
    assert search("user", index_of(a="user of the old archive machine", b="user")) == ["b", "a"]


def test_equal_matches_are_in_the_order_of_their_names() -> None:
    assert search("user", index_of(b="user", c="user", a="user")) == ["a", "b", "c"]


def test_no_more_matches_than_the_limit() -> None:
    assert search("user", index_of(b="user", c="user", a="user"), limit=2) == ["a", "b"]


def test_nothing_matches_an_empty_index_and_an_unknown_word() -> None:
    assert search("user", Index()) == []
    assert search("user") == []
    assert search("zebra", index_of(a="user")) == []


def test_tools_that_cannot_be_among_the_best_are_left_out() -> None:
    """The common word is read only for the tools that the rare words have found."""
    texts = {f"t{number}": "common" for number in range(50)}
    index = index_of(rare="zebra stripes common", **texts)
    assert search("zebra stripes common", index, limit=1) == ["rare"]


def test_several_indexes_are_searched_as_one() -> None:
    texts = {"a": "list orders", "b": "list users", "c": "count orders", "d": "remove old orders"}
    apart = [index_of(**{name: text}) for name, text in texts.items()]
    for query in ("orders", "list", "remove orders", "users count"):
        assert search(query, *apart) == search(query, index_of(**texts))


def test_a_removed_tool_leaves_nothing_behind() -> None:
    index = index_of(a="list orders", b="list users")
    index.remove("b")
    assert (search("list users", index), index.lengths, index.total_length) == (["a"], {"a": 2}, 2)
    assert not index.tools_with(stem("users"))
    with pytest.raises(KeyError):
        index.remove("b")
    index.remove("a")
    assert search("list", index) == []


def test_a_word_that_occurs_very_often_has_the_largest_number() -> None:
    index = index_of(a="user " * 1000)
    assert index.tools_with("user") == {"a": 250}


def test_a_word_of_the_same_meaning_counts_less() -> None:
    index = index_of(a="remove user", b="delete user", c="list user")
    assert search("delete user", index) == ["b", "a", "c"]
    assert search("erase", index) == ["a", "b"]


def test_a_query_has_each_word_once_and_no_more_than_the_limit() -> None:
    assert terms_in("zebra zebras lion", 3) == [{"zebra": 1.0}, {"lion": 1.0}]
    assert terms_in("zebra lion tiger", 2) == [{"zebra": 1.0}, {"lion": 1.0}]
    assert terms_in("bill invoice", 5) == [{"bill": 1.0}, {"invoic": 1.0}]
