"""The commands ``raters campaign ...``: a campaign run from the command line, one step at a time."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr
from rich.markup import escape

import raters as rt
from raters import _cli_campaign_files as files
from raters import _cli_common, _cli_files, _cli_labels, _cli_report, _cli_votes, _frame
from raters._cli_common import Options, Source, collected_warnings, note
from raters.acquisition import Candidates, ExpectedAccuracy, ExpectedTau, Policy, Random, formats
from raters.acquisition.campaign import Campaign
from raters.acquisition.journal import Told
from raters.errors import DataError, RatersError, SettingError

# ---------------------------------------------------------------- the commands


def start(options: Options) -> None:
    """Read what there is, and write the journal."""
    out: Path = options["out"]
    _cli_files.check_writable(out, folder=False)
    if out.exists():
        raise SettingError(f"--out {str(out)!r} is there already; name another file, or go on with raters campaign ask {out}")
    with _in_options():
        policy, quick = _policy(options), options["backend"] == "gibbs"
        given = any(options[name] is not None for name in ("draws", "warmup", "chains"))
        fitting = None if quick and not given else _cli_common.backend(options)
        with collected_warnings():
            model, pool, votes = _from_table(options) if options["file"] else _from_names(options)
            rule: Any = ExpectedAccuracy if isinstance(pool, rt.Labels) else ExpectedTau
            stop = None if options["until"] is None else rule(options["until"])
            settings = {name: options[name] for name in ("batch_size", "budget", "again", "seed")}
            campaign = Campaign(out, model, pool, votes=votes, backend=fitting, policy=policy, stop=stop, **settings)
    pool = campaign.pool
    size = f"{len(pool.annotator):,} questions, {len(pool.items)} items, {len(pool.annotators)} annotators"
    note(options, f"wrote {out} ({size}; {model!r}); ask with: raters campaign ask {out}")


def ask(options: Options) -> None:
    """Hand out questions: written to a file, or printed."""
    out = options["out"]
    if out is not None:
        _cli_files.check_writable(out, folder=False)
        _cli_files.table_format(out)
    with _in_options():
        campaign = Campaign.open(options["journal"], budget=options["budget"])
        questions = campaign.ask(options["number"], annotator=_people_asked(campaign, options))
        if not questions.sizes["id"]:
            print(f"Nothing to ask: {campaign.why_done or 'these annotators were asked everything that they may be asked'}.")
            return
        if out is None:
            _print_questions(questions)
        else:
            files.write_questions(questions, out)
    number = questions.sizes["id"]
    where = "" if out is None else f" in {out}, to fill in its column `answer`"
    back = "" if out is None else f" {out}"
    note(options, f"{number} question(s){where}; answers: raters campaign tell {options['journal']}{back}")


def tell(options: Options) -> None:
    """Take answers from a file, from the options, or from whoever types them."""
    file, question, answer = (options[name] for name in ("file", "question", "answer"))
    if (question is None) != (answer is None):
        raise SettingError("--id and --answer go together: --id a3f1-1 --answer first")
    if file is not None and question is not None:
        raise SettingError("FILE and --id both bring answers; give one of them")
    with _in_options():
        campaign = Campaign.open(options["journal"])
        if file is not None:
            _report(options, campaign.tell(files.answers_in(file, campaign), correct=options["correct"]))
        elif question is not None:
            _report(options, campaign.tell(question, answer, correct=options["correct"]))
        else:
            _one_by_one(options, campaign)


def status(options: Options) -> None:
    """Print where the campaign stands."""
    with _in_options():
        campaign = Campaign.open(options["journal"])
        found = campaign.status(probability=not options["quick"])
    out = _cli_report.Output()
    grid = _cli_report.new_grid(f"Campaign {options['journal']}")
    grid.add_column("", no_wrap=True)
    grid.add_column("", overflow="fold")
    budget = "" if found.budget is None else f" of {found.budget:g}"
    rows = {
        "model": repr(campaign.model),
        "policy": _differing(campaign.policy),
        "answered": f"{found.answered} questions, in {found.batches} batch(es)",
        "open": f"{found.open}",
        "withdrawn": f"{found.withdrawn}",
        "spent": f"{found.spent:g}{budget}" + (f", and {found.committed:g} for open questions" if found.committed else ""),
        "by annotator": ", ".join(f"{name}: {number}" for name, number in found.by_annotator.items() if number) or "nobody yet",
    }
    if found.order_probability is not None:
        rows["order"] = (
            f"right with probability {found.order_probability:.3f}; expected tau with the true one {found.expected_tau:.3f}"
        )
    if found.expected_accuracy is not None:
        rows["classes"] = f"{found.expected_accuracy:.1%} of the items' most probable classes are expected to be right"
    if found.fits:
        rows["short fits"] = f"largest R-hat {found.max_rhat:.3f}, smallest effective sample size {found.min_ess:.0f}"
    rows["done"] = found.why_done or "no"
    for name, text in rows.items():
        grid.add_row(name, escape(text))
    out.print(grid)


def withdraw(options: Options) -> None:
    """Take open questions back."""
    with _in_options():
        campaign = Campaign.open(options["journal"])
        ids = list(options["ids"] or [])
        if options["annotator"]:
            ids += campaign.outstanding(annotator=_people_asked(campaign, options))["id"].values.tolist()
        elif not ids:
            raise SettingError("say which: ids of questions, or --annotator NAME for all that wait for this one")
        found = campaign.withdraw(ids)
    note(
        options,
        f"withdrew {len(found)} question(s)" + (f"; {len(ids) - len(found)} were not open" if len(found) < len(ids) else ""),
    )


def export(options: Options) -> None:
    """Write open questions, or all answers."""
    out, to = options["out"], options["to"]
    for name in ("texts", "ties"):
        if options[name] and to in ("csv", "votes"):
            raise SettingError(f"--{name} belongs to --to label-studio and --to argilla; leave it out")
    _cli_files.check_writable(out, folder=False)
    if to in ("csv", "votes"):
        _cli_files.table_format(out)
    with _in_options():
        campaign = Campaign.open(options["journal"])
        if to == "votes":
            table = campaign.data.to_frame()
            with _cli_files.replacing(out) as path:
                _cli_files.write_table(table, path)
            note(options, f"wrote {len(table)} rows to {out}")
            return
        questions = campaign.outstanding(annotator=_people_asked(campaign, options))
        if not questions.sizes["id"]:
            raise DataError(f"no question is open; hand some out first with raters campaign ask {options['journal']}")
        if to == "csv":
            files.write_questions(questions, out)
            note(options, f"wrote {questions.sizes['id']} question(s) to {out}")
        else:
            files.write_for(options, questions)


def import_(options: Options) -> None:
    """Take answers from an export."""
    with _in_options():
        campaign = Campaign.open(options["journal"])
        if options["source"] == "csv":
            if options["people"]:
                raise SettingError("--people belongs to --from label-studio and --from argilla; leave it out")
            _report(options, campaign.tell(files.answers_in(options["file"], campaign), correct=options["correct"]))
            return
        people = {user: _own(name, campaign.pool.annotators) for user, name in _pairs(options["people"], "people", "USER=NAME")}
        read = formats.from_label_studio if options["source"] == "label-studio" else formats.from_argilla
        found = read(files.read_json(options["file"]), people or None)
        _report(options, campaign.tell(found.answers, correct=options["correct"]))
    if found.open:
        note(options, f"{len(found.open)} question(s) have no answer yet")
    if found.skipped:
        note(options, f"{len(found.skipped)} were skipped: {_frame.shorten(found.skipped)}; take them back with withdraw")
    for question, who, answer in found.by_others:
        note(options, f"left out: {question} was answered ({answer}) by {who}, who was not asked")
    for question, answers in found.disputed.items():
        note(
            options,
            f"left out: {question} has different answers ({', '.join(map(str, answers))}); say who is who with --people",
        )


# ---------------------------------------------------------------- from options to objects


def _from_table(options: Options) -> tuple[rt.Model, Any, Any]:
    """Model, pool and earlier judgements from a table; names given beside it are added to those in it."""
    found, options = _cli_common.source(options)
    kind: Any = _cli_labels if found.of_labels else _cli_votes
    model = kind.model_of(options, found.columns)
    data = kind.read(options, found)
    wanted = {role: _names(options[role]) for role in ("items", "annotators")}
    names = {role: _with_new(getattr(data, role), given) for role, given in wanted.items() if given}
    if any(names[role] != list(getattr(data, role)) for role in names):
        data = kind.read(dict(options) | {"quiet": True}, Source(found.table, found.columns, False), **names)
    asked: dict[str, Any] = {
        role: [_own(name, getattr(data, role)) for name in given] for role, given in wanted.items() if given
    }
    if found.of_labels:
        again = options["again"] or False
        return model, Candidates.labels(data, **asked, again=again, seed=options["seed"]), data
    return model, Candidates.pairs(data, **asked, seed=options["seed"]), data


def _from_names(options: Options) -> tuple[rt.Model, Any, None]:
    """Model and pool of a campaign that starts from nothing."""
    names: dict[str, Any] = {role: _names(options[role]) for role in ("items", "annotators")}
    for role, given in names.items():
        if not given:
            raise SettingError(
                f"without FILE, say what to ask about and whom: --items a,b,c --annotators ann,bob; --{role} is missing"
            )
    for name in (
        "winner",
        "loser",
        "first",
        "second",
        "outcome",
        "item",
        "rating",
        "label",
        "annotator",
        "count",
        "truth",
        "feature",
    ):
        if options[name]:
            raise SettingError(f"--{name} names a column of FILE, and there is no FILE; leave it out")
    of_labels = options["classes"] is not None
    kind: Any = _cli_labels if of_labels else _cli_votes
    name = "labels" if of_labels else "comparisons"
    model_name = options["model"] or _cli_common._DEFAULTS[name]["model"]
    if (model_name in _cli_common.COMPARISON_MODELS) == of_labels:
        raise SettingError(f"--model {model_name} does not take {name}; --classes a,b,c makes a campaign of labels")
    for other in _cli_common._OWN["comparisons" if of_labels else "labels"]:
        if options[other] not in (None, [], ()) and options[other] is not False:
            raise SettingError(f"--{other.replace('_', '-')} has no meaning for a campaign of {name}; leave it out")
    options = dict(options) | {key: options[key] or value for key, value in _cli_common._DEFAULTS[name].items()}
    if options["position_bias"]:
        raise SettingError("--position-bias needs earlier votes with --first, --second and --outcome; leave it out")
    model = kind.model_of(options, _cli_files.Columns())
    if of_labels:
        classes = _names(options["classes"])
        return model, Candidates.labels(**names, classes=classes, again=bool(options["again"]), seed=options["seed"]), None
    return model, Candidates.pairs(**names, seed=options["seed"]), None


def _policy(options: Options) -> Policy:
    costs = {name: _number(text, name) for name, text in _pairs(options["cost"], "cost", "NAME=NUMBER")}
    settings = {"costs": costs or None, "quota": options["quota"], "least_share": options["least_share"]}
    if options["target"] == "random":
        return Policy(score=Random(), **settings)
    return Policy(target=options["target"], k=options["k"], **settings)


def _names(text: str | None) -> list[Any]:
    """Names from a comma-separated list, or from a file with one a line."""
    if text is None:
        return []
    path = Path(text)
    try:
        lines = path.read_text("utf-8-sig").splitlines() if len(text) < 4096 and path.is_file() else text.split(",")
    except UnicodeDecodeError as error:
        raise DataError(f"{text!r} is not UTF-8 text; give a file with one name a line") from error
    found = [line.strip() for line in lines if line.strip()]
    return _frame.alike([[_as_number(name) for name in found]])[0] if found else []


def _as_number(name: str) -> Any:
    return int(name) if name.isdecimal() and str(int(name)) == name else name


def _with_new(known: Iterable[Any], given: list[Any]) -> list[Any]:
    """The names there are, and the new ones after them."""
    known = list(known)
    there = {_frame.text(name) for name in known}
    return known + [name for name in given if _frame.text(name) not in there]


def _own(name: Any, known: tuple[Any, ...]) -> Any:
    """A name as the data have it: as a number or as text; unknown ones as they are."""
    return next((one for one in known if _frame.text(one) == _frame.text(name)), name)


def _pairs(given: list[str] | None, option: str, form: str) -> list[tuple[str, str]]:
    found = []
    for text in given or []:
        name, sign, value = text.rpartition("=")
        if not (sign and name.strip() and value.strip()):
            raise SettingError(f"--{option} {text} cannot be read; write --{option} {form}")
        found.append((name.strip(), value.strip()))
    return found


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise SettingError(f"--cost {name}={text} is no number; write --cost {name}=2.5") from error


def _people_asked(campaign: Campaign, options: Options) -> list[Any] | None:
    names = options["annotator"]
    return [_own(name, campaign.pool.annotators) for name in names] if names else None


_TRANSLATED = {
    r"start one with rt\.Campaign\([^)]*\)": "write it with raters campaign start --out CAMPAIGN.db",
    r"or go on with that campaign by rt\.Campaign\.open\([^)]*\)": "or go on with that campaign",
    r"rt\.Campaign(\.open)?\(path, (stop=|model, pool, )\.\.\.\)": "go on in Python, where it was started",
    r"\b([Ww]rite) correct=True when": r"\1 --correct when",
    r"\b(budget|least_share|quota|target|number|again|items|annotators)=(?:'([^']*)'|([-\w.]+))": r"--\1 \2\3",
    r"\b(items|annotators|classes|texts)=(?=[;,\s])": r"--\1",
    r"costs has": "--cost has",
    r"\bat_least=": "--until ",
    r"; campaign\.ask\(\) hands out questions": "",
}


@contextmanager
def _in_options() -> Any:
    """Errors in the words of the command line."""
    try:
        yield
    except RatersError as error:
        text = str(error)
        for pattern, instead in _TRANSLATED.items():
            text = re.sub(pattern, instead, text)
        raise type(error)(text.replace("--least_share", "--least-share")) from error


# ---------------------------------------------------------------- answers


def _one_by_one(options: Options, campaign: Campaign) -> None:
    """Put every open question to whoever is at the terminal. Each answer is in the journal before the next question."""
    questions = campaign.outstanding(annotator=_people_asked(campaign, options))
    table, number = questions.to_dataframe().reset_index(), 0
    if table.empty:
        print(f"No question is open; hand some out with raters campaign ask {options['journal']}.")
        return
    for row in table.to_dict("records"):
        try:
            said = _typed(row, questions.attrs.get("classes"), lambda said, row=row: campaign.tell(row["id"], said))  # type: ignore[misc]
        except (EOFError, KeyboardInterrupt):
            print()
            break
        if said == "q":
            break
        number += said != "s"
    note(options, f"{number} answer(s) taken")


def _typed(row: dict[str, Any], classes: list[str] | None, take: Callable[[str], Told]) -> str:
    """What was typed for one question, once it is an answer that was taken, or ``s`` or ``q``."""
    keys = {"l": "left", "r": "right", "t": "tie"} if classes is None else {}
    sides = [] if classes is not None else [_frame.text(row["first"]), _frame.text(row["second"])]
    names = classes or sides
    what = f"{_frame.text(row.get('item'))}: {', '.join(names)}?" if classes else f"{sides[0]} (l) or {sides[1]} (r)? tie (t),"
    while True:
        said = input(f"{row['id']} {row['by']}: {what} skip (s), quit (q) > ").strip()
        if not said:
            continue
        if said in ("s", "q") and said not in names:
            return said
        try:
            take(said if said in names else keys.get(said.lower(), said))
        except DataError as error:
            print(f"raters: {error}", file=sys.stderr)
            continue
        print(f"noted {row['id']}", flush=True)
        return "noted"


def _report(options: Options, told: Told) -> None:
    parts = [f"{len(told.new)} new answer(s)"]
    parts += [f"{len(told.again)} told before" for _ in told.again[:1]]
    parts += [f"{len(told.corrected)} corrected" for _ in told.corrected[:1]]
    parts += [f"{len(told.late)} to questions that had been withdrawn" for _ in told.late[:1]]
    note(options, ", ".join(parts))


# ---------------------------------------------------------------- output


def _differing(thing: Any) -> str:
    """What was set, by name; nothing of what is as it is by default."""
    fields = [one for one in dataclasses.fields(thing) if getattr(thing, one.name) != one.default]
    said = ", ".join(f"{one.name}={getattr(thing, one.name)!r}" for one in fields)
    return f"{type(thing).__name__}({said})" if said else f"{type(thing).__name__}(), the default"


def _print_questions(questions: xr.Dataset) -> None:
    out = _cli_report.Output()
    grid = _cli_report.new_grid("Next questions")
    roles = ["item"] if "item" in questions else ["first", "second"]
    for heading in ("id", *roles, "ask"):
        grid.add_column(heading, overflow="fold", min_width=6)
    grid.add_column("score", justify="right", no_wrap=True)
    for row in questions.to_dataframe().reset_index().to_dict("records"):
        grid.add_row(*(escape(str(row[name])) for name in ("id", *roles, "by")), f"{row['score']:.3f}")
    out.print(grid)
