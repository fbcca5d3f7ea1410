"""A campaign over HTTP: questions for people in a browser, and for programs as JSON.

The journal of the campaign is the only truth: a question is in it before it leaves, and an answer
before it is acknowledged. Each person has a token, and sees their own questions alone; the token
named by an empty name is the owner's, who sees everything.
"""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import secrets
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
import xarray as xr
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from raters.acquisition import formats
from raters.acquisition.campaign.campaign import Campaign
from raters.errors import RatersError, refuse, refuse_data
from raters.judgements.names import check_once, name_text, shorten

# Name of the owner among the tokens; questions that wait for each person; most that are handed out
# at once, and most bytes of a request.
_OWNER, _AHEAD, _MOST_ASKED, _MOST_BYTES = "", 5, 50, 100_000
Given = dict[str, Any]


def tokens_of(path: Path, campaign: Campaign) -> dict[str, str]:
    """Tokens by person from a table, which is made for all annotators where there is none; only its
    owner can read it."""
    people = [_OWNER, *map(name_text, campaign.pool.judges)]
    if not path.exists():
        path.touch(mode=0o600)
        with path.open("w", newline="", encoding="utf-8") as table:
            made = [(name, secrets.token_urlsafe(24)) for name in people]
            csv.writer(table).writerows([("annotator", "token"), *made])
    with path.open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    if not rows or not {"annotator", "token"} <= rows[0].keys():
        refuse_data("tokens", str(path), "has no tokens", "give columns annotator and token")
    tokens = {row["annotator"]: row["token"] for row in rows}
    if unknown := set(tokens) - set(people):
        expected = f"name annotators of the campaign ({shorten(people[1:])})"
        refuse_data("tokens", shorten(unknown), "are none of its annotators", expected)
    check_once(tokens.values(), "tokens")
    if short := [name for name, token in tokens.items() if len(token or "") < 16]:
        refuse("tokens", shorten(short), "are too short", "give each 16 characters or more")
    return tokens


class Desk:
    """Questions that wait for each person, asked ahead so that nobody waits for a fit."""

    def __init__(self, campaign: Campaign, texts: Mapping[Any, str] | None, ties: bool) -> None:
        self.campaign, self._texts, self._ties = campaign, texts, ties
        self._person_of: dict[str, str] = {}
        self._filling, self._ahead = threading.Lock(), ThreadPoolExecutor(1)

    def ask(self, person: str, given: Given) -> Given:
        """The first questions that wait for a person; new ones where there are too few."""
        if person == _OWNER:
            raise ValueError("questions are put to people; use the token of one")
        number = given.get("number", 1)
        if type(number) is not int or not 1 <= number <= _MOST_ASKED:
            raise ValueError(f"number is {number!r}; it must be from 1 to {_MOST_ASKED}")
        table = self._waiting(person)
        if table.sizes["id"] < number:
            self._fill(person, max(number, _AHEAD))
            table = self._waiting(person)
        if not table.sizes["id"]:
            return {"questions": [], "title": ""}
        options = formats.options_of(table, self._ties)
        questions = [
            {"id": row.id, "about": row.texts, "answers": list(row.answers) or options}
            for row in formats.rows_of(table.isel(id=slice(number)), self._texts)
        ]
        return {"questions": questions, "title": formats.title_of(table)}

    def _waiting(self, person: str) -> xr.Dataset:
        """Open questions to a person."""
        table = self.campaign.outstanding(annotator=person)
        self._person_of |= dict.fromkeys(table["id"].values.tolist(), person)
        return table

    def _fill(self, person: str, number: int) -> None:
        with self._filling:  # What another thread has asked meanwhile is not missing.
            if (missing := number - self._waiting(person).sizes["id"]) > 0:
                self.campaign.ask(missing, annotator=person)

    def _check_owner(self, person: str, ids: list[str]) -> None:
        """Raise unless all questions were put to a person."""
        if not self._person_of.keys() >= set(ids):  # Asked by another process, or before.
            asked = self.campaign.asked
            names = map(name_text, asked["by"].values.tolist())
            self._person_of |= dict(zip(asked["id"].values.tolist(), names, strict=True))
        if person != _OWNER and any(self._person_of.get(one) != person for one in ids):
            raise HTTPException(403, "this question was not put to you")

    def tell(self, person: str, given: Given) -> Given:
        """Store an answer, and say what became of it."""
        question, answer = given.get("id"), given.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str | int | float):
            raise ValueError("send the id of a question, and the answer")
        self._check_owner(person, [question])
        try:
            told = self.campaign.tell(question, answer)
        except RatersError as error:
            if error.parameter == "correct":
                raise ValueError("this question has another answer already") from error
            raise
        if person != _OWNER:
            self._ahead.submit(self._fill_ahead, person)
        became = next((name for name, ids in told._asdict().items() if ids), "again")
        return {"id": question, "became": became}

    def _fill_ahead(self, person: str) -> None:
        try:
            if self._waiting(person).sizes["id"] < 2:
                self._fill(person, _AHEAD)
        except Exception:  # The next request of this person meets it again.
            logging.getLogger(__name__).exception("no questions ahead for %s", person)

    def withdraw(self, person: str, given: Given) -> Given:
        """Withdraw open questions."""
        ids = given.get("ids")
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise ValueError("send a list of ids")
        self._check_owner(person, ids)
        return {"withdrawn": list(self.campaign.withdraw(ids))}

    def status(self, person: str, given: Given) -> Given:
        """Status of the campaign; to a person, the number of their own answers."""
        status = self.campaign.status(probability=False)
        by_person = {name_text(name): number for name, number in status.by_annotator.items()}
        if person != _OWNER:
            return {"answered": by_person.get(person, 0)}
        names = ("answered", "open", "withdrawn", "spent")
        counts = {name: getattr(status, name) for name in names}
        return counts | {"by_annotator": by_person, "why_done": status.why_done}


# ---------------------------------------------------------------- over HTTP

_VERBS = {"ask": Desk.ask, "tell": Desk.tell, "withdraw": Desk.withdraw, "status": Desk.status}
# The page loads nothing from elsewhere, and no other page shows it.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'unsafe-inline'; style-src"
    " 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def application(desk: Desk, tokens: Mapping[str, str]) -> Starlette:
    """The server as an ASGI application."""
    # Digests are looked up, so that the time it takes tells nothing of a token.
    people = {_digest(token): person for person, token in tokens.items()}
    page = files("raters.acquisition").joinpath("page.html").read_text("utf-8")

    async def start(request: Request) -> Response:
        return HTMLResponse(page, headers=_HEADERS)

    async def verb(request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        person = people.get(_digest(token)) if scheme.lower() == "bearer" else None
        if person is None:
            raise HTTPException(401, "the token is missing, or is nobody's")
        run = _VERBS.get(request.path_params["verb"])
        if run is None:
            raise HTTPException(404, f"there are {', '.join(_VERBS)}")
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BYTES:
                raise HTTPException(413, "the request is too long")
        given = json.loads(body or b"{}")
        if not isinstance(given, dict):
            raise ValueError("send an object of JSON")
        return JSONResponse(await run_in_threadpool(run, desk, person, given))

    async def failed(request: Request, error: Exception) -> Response:
        status, text = getattr(error, "status_code", 400), getattr(error, "detail", str(error))
        return JSONResponse({"error": text}, status)

    routes = [Route("/", start), Route("/{verb}", verb, methods=["POST"])]
    handled = HTTPException, RatersError, ValueError, RecursionError
    return Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, failed))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def serve(application: Starlette, host: str, port: int) -> None:
    """Serve until interrupted."""
    uvicorn.run(application, host=host, port=port, log_level="warning", access_log=False)
