"""Inputs of hostile and of clumsy users: each is refused in one clear line, and nothing raw comes
through."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.acquisition import formats
from raters.errors import RatersError

POOL = rt.Candidates.pairs(items=["a", "b", "c"], annotators=["x"])
RANDOM = rt.Policy(score=rt.acquisition.Random())


@pytest.fixture
def campaign(tmp_path):
    return rt.Campaign(tmp_path / "a.db", rt.BTL(), POOL, policy=RANDOM)


@pytest.mark.parametrize("ids", [None, 3, [None], ["zz"], "x", {"a": 1}, [["a"]], object()])
def test_withdraw(campaign, ids):
    campaign.ask(2)
    with pytest.raises(RatersError, match=r"give the id|no question"):
        campaign.withdraw(ids)
    assert campaign.outstanding().sizes["id"] == 2


@pytest.mark.parametrize("answers", [None, 3, {"x": None}, {None: "a"}, [("x", "a")], "x", {3: 4}])
def test_tell(campaign, answers):
    campaign.ask(2)
    with pytest.raises(RatersError, match=r"tell takes|no question"):
        campaign.tell(answers)
    assert campaign.data.num_votes == 0


@pytest.mark.parametrize(
    "path", ["", "/nonexistent/a.db", "/tmp", "/dev/null", "/dev/zero", 3, None, "a\0b", b"a", []]
)
def test_paths_of_a_campaign(path):
    with pytest.raises(RatersError, match=r"name a file|no folder|must be the path"):
        rt.Campaign(path, rt.BTL(), POOL)
    with pytest.raises(RatersError, match=r"name a|no file|must be the path"):
        rt.Campaign.open(path)


@pytest.mark.parametrize("user", [[1], ["x"], {"id": [1]}, {"email": {}}])
def test_users_of_label_studio(campaign, user):
    result = [{"type": "choices", "value": {"choices": ["left"]}}]
    export = [
        task | {"annotations": [{"completed_by": user, "result": result}]}
        for task in formats.to_label_studio(campaign.ask(1))
    ]
    with pytest.raises(RatersError, match="names no user"):
        formats.from_label_studio(export)


@pytest.mark.parametrize("user", [["u"], {"id": 1}, ("u",)])
def test_users_of_argilla(user):
    record = {"id": "a", "answer.responses": ["x"], "answer.responses.users": [user]}
    with pytest.raises(RatersError, match="the id of one user"):
        formats.from_argilla([record])


@pytest.mark.parametrize("export", [None, {}, [1], "x", [{"id": 1}], 3, [None], [[]]])
def test_exports(export):
    for read in (formats.from_label_studio, formats.from_argilla):
        with pytest.raises(RatersError, match=r"expected a list|has no id"):
            read(export)


TABLES = {
    "none": None,
    "text": "votes.csv",
    "number": 3,
    "list": [("a", "b")],
    "one dimension": np.array(["a", "b"]),
    "empty": {"w": [], "l": []},
    "two lengths": {"w": ["a"], "l": ["b", "c"]},
    "a set": {"w": {"a"}, "l": {"b"}},
    "lists": {"w": [["a"], ["b"]], "l": ["c", "d"]},
    "ragged": {"w": [["a"], ["b", "c"]], "l": ["c", "d"]},
    "two dimensions": {"w": np.zeros((2, 2)), "l": ["c", "d"]},
    "missing": {"w": ["a", None], "l": ["b", "c"]},
    "not a number": {"w": [1.0, np.nan], "l": [2.0, 3.0]},
    "no column": {"w": ["a"]},
    "itself": {"w": ["a"], "l": ["a"]},
    "bytes": {"w": np.array([b"\xff"]), "l": ["b"]},
    "half a character": {"w": ["\ud800"], "l": ["b"]},
    "the character NUL": {"w": ["a\0"], "l": ["b"]},
    "true and one": {"w": np.array([True, 1], object), "l": ["b", "c"]},
    "one name twice": {"w": ["a"], "l": ["b"], 1: [1], "1": [2]},
    "equal columns": pd.DataFrame([["a", "b", "c"]], columns=["w", "l", "w"]),
    "dictionaries": {"w": [{"a": 1}], "l": ["b"]},
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables(table):
    with pytest.raises(RatersError) as caught:
        rt.Comparisons.from_frame(table, winner="w", loser="l")
    assert len(str(caught.value)) < 500


def test_numbers_as_names_of_columns():
    frame = pd.DataFrame({0: ["a", "b"], 1: ["b", "c"]})
    votes = rt.Comparisons.from_frame(frame, winner="0", loser="1")
    assert votes.items == ("a", "b", "c")
    with pytest.raises(RatersError, match="takes the name of a column"):
        rt.Comparisons.from_frame(frame, winner=0, loser=1)
