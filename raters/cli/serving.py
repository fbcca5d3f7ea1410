"""The command ``raters serve``: a campaign over HTTP."""

from __future__ import annotations

from argparse import Namespace

from raters.acquisition.campaign.campaign import Campaign
from raters.cli import files, reading
from raters.cli.campaign import texts_of, ties_of
from raters.cli.files import note
from raters.errors import SettingError


def serve(given: Namespace) -> None:
    """Serve until interrupted; the links of people are in the table of tokens."""
    try:
        from raters.acquisition import server
    except ImportError as error:
        message = f"{error.name} is not installed; install raters with its extra `serve`"
        raise SettingError(message) from error
    reading.kind_asked(given.kind)  # imports it
    campaign = Campaign.open(given.journal)
    path = given.tokens or files.companion(given.journal, "-tokens.csv")
    tokens = server.tokens_of(path, campaign)
    desk = server.Desk(campaign, texts_of(given.texts), ties_of(campaign))
    address = f"http://{given.host}:{given.port}"
    note(
        f"serving {given.journal} at {address}/#TOKEN; tokens of people are in {path}", given.quiet
    )
    server.serve(server.application(desk, tokens), given.host, given.port)
