"""A campaign over HTTP: tokens, one's own questions, and no answer lost or doubled."""

from __future__ import annotations

import csv
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

import raters as rt
from raters.acquisition import server
from raters.acquisition.campaign.campaign import Campaign
from raters.errors import DataError, SettingError

POOL = rt.Candidates.pairs(items=["tea", "milk", "beer", "mead"], annotators=["ann", "bob"])
RANDOM = rt.Policy(score=rt.acquisition.Random())


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def served(tmp_path: Path) -> tuple[TestClient, dict[str, str], Campaign]:
    """A server, its tokens, and the campaign."""
    campaign = Campaign(tmp_path / "tea.db", rt.BTL(), POOL, policy=RANDOM, batch_size=1000)
    tokens = server.tokens_of(tmp_path / "tokens.csv", campaign)
    desk = server.Desk(campaign, {name: f"<b>{name}</b>" for name in POOL.items}, ties=False)
    return TestClient(server.application(desk, tokens)), tokens, campaign


def test_a_person_answers_their_own_questions(served: tuple) -> None:
    client, tokens, campaign = served
    ann, bob, owner = (bearer(tokens[name]) for name in ("ann", "bob", ""))
    said = client.post("/ask", headers=ann, json={"number": 2}).json()
    assert [one["answers"] for one in said["questions"]] == [["first", "second"]] * 2
    assert said["questions"][0]["about"]["first"].startswith("<b>")
    # Asked again before an answer, it is the same question.
    again = client.post("/ask", headers=ann, json={"number": 2}).json()
    assert again == said
    question = said["questions"][0]["id"]
    answer = {"id": question, "answer": "first"}
    assert client.post("/tell", headers=bob, json=answer).status_code == 403
    assert campaign.status(probability=False).answered == 0
    assert client.post("/tell", headers=ann, json=answer).json()["became"] == "new"
    assert client.post("/tell", headers=ann, json=answer).json()["became"] == "again"
    changed = answer | {"answer": "second"}
    assert client.post("/tell", headers=ann, json=changed).status_code == 400
    other = said["questions"][1]["id"]
    assert client.post("/withdraw", headers=ann, json={"ids": [other]}).json()["withdrawn"] == [
        other
    ]
    status = client.post("/status", headers=owner).json()
    assert status["by_annotator"] == {"ann": 1, "bob": 0}
    assert client.post("/status", headers=bob).json() == {"answered": 0}


def test_what_is_withdrawn_elsewhere_waits_for_nobody(served: tuple) -> None:
    client, tokens, campaign = served
    ann = bearer(tokens["ann"])
    (first,) = client.post("/ask", headers=ann, json={"number": 1}).json()["questions"]
    campaign.withdraw(first["id"])
    (second,) = client.post("/ask", headers=ann, json={"number": 1}).json()["questions"]
    assert second["id"] != first["id"]


def test_a_wrong_token_gets_nothing(served: tuple) -> None:
    client, tokens, campaign = served
    for headers in ({}, bearer(""), bearer("x" * 32), {"authorization": f"Basic {tokens['ann']}"}):
        for verb in ("ask", "tell", "withdraw", "status", "other"):
            reply = client.post(f"/{verb}", headers=headers, json={"number": 1})
            assert reply.status_code == 401
            assert set(reply.json()) == {"error"}
    assert campaign.asked.sizes["id"] == 0


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        ("ask", b'{"number": 0}', 400),
        ("ask", b'{"number": "many"}', 400),
        ("ask", b"[1]", 400),
        ("ask", b"{", 400),
        ("ask", b"[" * 60_000, 400),
        ("tell", b'{"id": "nothing", "answer": "first"}', 403),
        ("tell", b'{"id": 7, "answer": "first"}', 400),
        ("withdraw", b'{"ids": "a"}', 400),
        ("other", b"{}", 404),
        ("tell", b" " * 200_000, 413),
    ],
)
def test_wrong_requests_are_answered(served: tuple, verb: str, body: bytes, status: int) -> None:
    client, tokens, _ = served
    reply = client.post(f"/{verb}", headers=bearer(tokens["ann"]), content=body)
    assert reply.status_code == status
    assert reply.json()["error"]


def test_wrong_tables_of_tokens_are_refused(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "tea.db", rt.BTL(), POOL, policy=RANDOM)
    wrong = {
        "name,token\nann,0123456789abcdef\n": DataError,
        "annotator,token\nzoe,0123456789abcdef\n": DataError,
        "annotator,token\nann,short\n": SettingError,
    }
    for text, error in wrong.items():
        (tmp_path / "tokens.csv").write_text(text)
        with pytest.raises(error):
            server.tokens_of(tmp_path / "tokens.csv", campaign)
    made = tmp_path / "made.csv"
    assert set(server.tokens_of(made, campaign)) == {"", "ann", "bob"}
    assert made.stat().st_mode & 0o077 == 0


# ---------------------------------------------------------------- kills


def _process(journal: Path, port: int) -> subprocess.Popen[bytes]:
    """A server, once it answers."""
    command = [sys.executable, "-m", "raters.cli.app", "serve", str(journal), "--port", str(port)]
    process = subprocess.Popen([*command, "--quiet"], env=os.environ | {"JAX_PLATFORMS": "cpu"})
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.1)
    raise TimeoutError


@pytest.mark.slow
def test_no_acknowledged_answer_is_lost_or_doubled(tmp_path: Path) -> None:
    people, number, kills = [f"p{place}" for place in range(200)], 3, 3
    pool = rt.Candidates.pairs(items=list("abcd"), annotators=people)
    journal = tmp_path / "many.db"
    Campaign(journal, rt.BTL(), pool, policy=RANDOM, batch_size=100_000)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = _process(journal, port)
    with (tmp_path / "many.db-tokens.csv").open(newline="") as table:
        tokens = {row["annotator"]: row["token"] for row in csv.DictReader(table)}
    acknowledged: list[tuple[str, str]] = []

    def post(client: httpx.Client, verb: str, body: dict) -> dict:
        while True:
            try:
                reply = client.post(f"http://127.0.0.1:{port}/{verb}", json=body)
                if reply.status_code == 200:
                    return dict(reply.json())
            except httpx.HTTPError:
                time.sleep(random.random())

    def work(person: str) -> None:
        with httpx.Client(headers=bearer(tokens[person]), timeout=30) as client:
            for _ in range(number):
                (question,) = post(client, "ask", {"number": 1})["questions"]
                post(client, "tell", {"id": question["id"], "answer": "first"})
                acknowledged.append((person, question["id"]))

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for kill in range(1, kills + 1):
        while len(acknowledged) < kill * len(people) * number // (kills + 1):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process = _process(journal, port)
    for thread in threads:
        thread.join()
    process.kill()
    process.wait()
    asked = Campaign.open(journal).asked.to_dataframe()
    answered = asked[asked["status"] == "answered"]
    assert len(acknowledged) == len(set(acknowledged)) == len(people) * number
    assert set(acknowledged) == set(zip(answered["by"], answered.index, strict=True))
