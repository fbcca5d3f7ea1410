"""Sentences of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from raters.auditing.verdicts import DIFFERS
from raters.inference.mixing import FEWEST_DRAWS
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import Words
from raters.reporting.facts import percent, plural_noun

if TYPE_CHECKING:
    from raters.auditing.audit import Audit
    from raters.auditing.settling import Settling
    from raters.judgements.base import Judgements

# From this probability on, the reason for a verdict is stated without "perhaps".
CLEAR = 0.8


def listing(names: Sequence[Any], most: int = 6) -> str:
    """Join names as in a sentence; of more than `most`, count the rest."""
    named = [isolated(name) for name in (names if len(names) <= most else names[: most - 1])]
    return joined(named + [f"{len(names) - len(named):,} others"] * (len(names) > most))


def joined(parts: Sequence[str]) -> str:
    """Join parts of a sentence, the last two by "and"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def about(value: float) -> str:
    """Format an expected number with about two significant digits."""
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


# ---------------------------------------------------------------- verdicts


def answer(numbers: Mapping[str, Any], audit: Audit, words: Words) -> str:
    """Summarise the verdicts in one sentence."""
    counts, total = numbers["counts"], sum(numbers["counts"].values())
    if audit.anchor.is_missing:
        return _unanchored(numbers, audit, words)
    drop, review, keep, unjudged, undrawn = (
        counts[verdict]
        for verdict in ("drop", "review", "keep", "too few judgements", "too few draws")
    )
    if undrawn:
        who = counted(undrawn, audit.judge, plural_noun(audit.judge))
        rest = f"; of the others, {drop:,} should go" if undrawn < total else ""
        return (
            f"No verdict on {who}: the fit holds fewer than {FEWEST_DRAWS} effective draws of what"
            f" they are judged by, so draw more{rest}."
        )
    enough = counted(audit.min_judgements, *words)
    if total == 1:
        names = numbers["flagged"] + numbers["review"]
        named = "".join(f" ({isolated(name)})" for name in names)
        verdict = "should go" if drop else "should be looked at" if review else "can stay"
        return (
            f"The only {audit.judge}{named}"
            f" {f'cannot be judged: there are fewer than {enough}' if unjudged else verdict}."
        )
    crowd = counted(total, audit.judge, plural_noun(audit.judge))
    if unjudged == total:
        return f"Nobody can be judged: none of {crowd} has {enough} or more."
    few = (
        f" {unjudged:,} {'has' if unjudged == 1 else 'have'} too few {words.many} to be judged."
        if unjudged
        else ""
    )
    if not drop and not review:
        return (
            f"All {crowd} can stay."
            if not unjudged
            else f"None of {crowd} should go; {keep:,} can stay."
        ) + few
    if drop:
        named = f" ({listing(numbers['flagged'])})" if drop <= 3 else ""
        parts = [f"{drop:,} of {crowd} should go{named}"]
        parts += [f"{review:,} should be looked at"] if review else []
    else:
        named = f" ({listing(numbers['review'])})" if review <= 3 else ""
        parts = [f"None of {crowd} should go", f"{review:,} should be looked at{named}"]
    return f"{'; '.join(parts)}; {keep:,} can stay.{few}"


def _unanchored(numbers: Mapping[str, Any], audit: Audit, words: Words) -> str:
    """Summarise verdicts that rest on agreement with the crowd alone."""
    counts, total = numbers["counts"], sum(numbers["counts"].values())
    crowd = counted(total, audit.judge, plural_noun(audit.judge))
    parts = [
        _some(
            counts["drop"],
            numbers["flagged"],
            "should go, as the answers do not depend on the question",
        ),
        _some(counts[DIFFERS], numbers["differing"], "from the crowd", ("differs", "differ")),
        _some(counts["review"], numbers["review"], "should be looked at"),
        _some(counts["keep"], [], "with the crowd", ("agrees", "agree")),
        _some(
            counts["too few judgements"], [], f"too few {words.many} to be judged", ("has", "have")
        ),
        _some(
            counts["too few draws"],
            [],
            "without a verdict, as the fit holds fewer than"
            f" {FEWEST_DRAWS} effective draws: draw more",
            ("is", "are"),
        ),
    ]
    return f"Of {crowd}, {'; '.join(part for part in parts if part)}."


def _some(number: int, names: Sequence[Any], text: str, verb: tuple[str, str] = ("", "")) -> str:
    """A number of judges, of whom up to three are named; nothing without any."""
    named = f" ({listing(names)})" if 0 < len(names) <= 3 else ""
    word = verb[number != 1]
    return " ".join(filter(None, [f"{number:,}", word, f"{text}{named}"])) if number else ""


def one_answer(audit: Audit) -> str:
    """Explain a verdict on somebody who always answers alike."""
    return (
        f"the same answer whatever the question: whoever is right, this {audit.judge} tells nothing"
    )


_AGREEING = (
    "Who agrees with the crowd is right as far as the crowd is, and nothing here tells how far that"
    " is."
)


def sure(numbers: Mapping[str, Any], audit: Audit, words: Words) -> list[str]:
    """Describe the uncertainty of the verdicts, and their expected cost."""
    counts, lines = numbers["counts"], []
    drop, keep = counts["drop"], counts["keep"]
    if drop:
        lines.append(_wrong_drops(drop, numbers, audit))
    bad = numbers["expected_bad_kept"]
    if counts[DIFFERS]:
        lines.append(_differing(counts[DIFFERS], numbers, audit))
    if audit.anchor.is_missing:
        return lines if lines or not keep else [_AGREEING]
    if keep == 1:
        lines.append(f"The one who can stay is good enough with probability {percent(1 - bad)}.")
    elif keep:
        some = (
            f"about {about(bad)} are expected not to be"
            if bad >= 0.005
            else "all are expected to be"
        )
        lines.append(f"Of the {keep:,} who can stay, {some} good enough.")
    if drop or counts["review"]:
        lines.append(_costs(counts, numbers, audit))
    if drop:
        share = numbers["judgements_of_flagged"] / max(numbers["judgements"], 1)
        who = "Those who should go gave" if drop > 1 else "The one who should go gave"
        every = counted(numbers["judgements"], *words)
        lines.append(f"{who} {numbers['judgements_of_flagged']:,} of {every} ({percent(share)}).")
    return lines


def would_change(audit: Audit) -> str:
    """Say what would settle the verdicts that are open; nothing where none is."""
    return f"{truths}: see “What to do next”." if (truths := settled_by_truths(audit)) else ""


def settled_by_truths(audit: Audit) -> str:
    """Say how many known truths are expected to settle open verdicts, without a full stop."""
    if (wanted := audit.settling) is None:
        return ""
    settled = (
        f"the one verdict that is open with probability {percent(wanted.settled)}"
        if wanted.open == 1
        else f"{about(wanted.settled)} of the {wanted.open:,} verdicts that are open"
    )
    return f"Finding out the truth of {questions_of(wanted)} is expected to settle {settled}"


def questions_of(wanted: Settling) -> str:
    """Which questions the truth is wanted of: a random part, or all that may tell."""
    if wanted.is_enough:
        return f"{counted(wanted.number, 'question')} drawn at random"
    return f"all {counted(wanted.number, 'open question')} that those in question answered"


def _differing(number: int, numbers: Mapping[str, Any], audit: Audit) -> str:
    """Say what disagreement with the crowd tells of being right."""
    if audit.calibration is None:
        return (
            "Who differs from the crowd may be right where it is wrong, and nothing here tells how"
            " often that is so."
        )
    good = about(numbers["expected_good_differing"])
    who = "the one who differs is" if number == 1 else f"the {number:,} who differ are"
    return (
        f"By what is known of other crowds, {good} of {who} expected to be good enough"
        " after all; this crowd may be one in which it is otherwise."
        if number > 1
        else "By what is known of other crowds, the one who differs is good enough with probability"
        f" {percent(numbers['expected_good_differing'])}; this crowd may be one in which it is"
        " otherwise."
    )


def not_final(fitted: Mapping[str, Any], audit: Audit | None) -> list[str]:
    """Say why the answer may still change: doubts in the known truths, a fit that has not settled,
    or what its model warns of."""
    unsettled = (
        "the fit has not settled, see “Can the numbers be relied on?”. Do not act on this page yet"
    )
    if fitted["open"]:
        unsettled = (
            f"the verdicts of {listing(fitted['open'])} may still change, see “Can the numbers be"
            " relied on?”; a longer run would hardly change the others"
        )
    of_fit = ([] if fitted["settled"] else [unsettled]) + list(fitted["fit_warnings"])
    reasons = [*(() if audit is None else audit.anchor.doubts), *of_fit]
    return [f"Not final: {reason}." for reason in reasons]


def worlds(audit: Audit) -> str:
    """Explain the two intervals of each judge where two mirrored worlds are possible."""
    first, other = map(percent, audit.tables["worlds"]["probability"].values.tolist())
    return (
        f"Two worlds are possible, each the mirror image of the other, and each {audit.judge} has a"
        f" {audit.judged} in either: the first one given holds with probability {first}, the second"
        f" with {other}. The mean of the two would be a {audit.judged} in neither."
    )


def _wrong_drops(drop: int, numbers: Mapping[str, Any], audit: Audit) -> str:
    """Give the expected number of wrong drops."""
    good, wrong = f"{audit.judged} is {audit.threshold:g} or more", numbers["expected_wrong_drops"]
    if drop == 1:
        return (
            f"The one who should go is good enough with probability {percent(wrong)}: that {good}"
            " after all."
        )
    share = percent(numbers["expected_share_of_wrong_drops"])
    return (
        f"Of the {drop:,} who should go, about {about(wrong)} ({share}) are expected to be good"
        f" enough: their {good} after all."
    )


def _costs(counts: Mapping[str, int], numbers: Mapping[str, Any], audit: Audit) -> str:
    """Give the expected cost of the verdicts, and of keeping everybody."""
    costs, judged = audit.costs, " who was judged" if counts["too few judgements"] else ""
    return (
        f"Where keeping a bad {audit.judge} costs {costs.keep_bad:g}, dropping a good one"
        f" {costs.drop_good:g} and a review {costs.review:g}, acting on the verdicts is"
        f" expected to cost {about(numbers['expected_cost'])}, and keeping everybody{judged}"
        f" {about(numbers['expected_cost_of_keeping_all'])}."
    )


# ---------------------------------------------------------------- reasons


def reason_of(row: Mapping[str, Any], *, random: float, random_text: str) -> str:
    """Explain a verdict on somebody in question: an adversary, a random judge, or neither."""
    adversarial = row["p_adversarial"]
    perhaps = "" if max(adversarial, random) > CLEAR else "perhaps "
    if adversarial > max(random, 0.5):
        hint = "" if perhaps else ": read upside down?"
        wrong = "wrong" if row.get("anchored", True) else "against the crowd"
        return f"{perhaps}{wrong} more often than chance{hint}"
    if random > 0.5:
        return f"{perhaps}{random_text}"
    if row["verdict"] == DIFFERS:
        return "agrees with the crowd too seldom to be of use, if it is right"
    if row["verdict"] == "drop":
        return "right too seldom to be of use"
    return "good or bad: the answers so far do not tell"


def general_reason(row: Mapping[str, Any], audit: Audit) -> str:
    """Explain a verdict of ``drop`` or ``review`` where the kind gives no reason."""
    return f"{audit.judged} is below {audit.threshold:g} with probability {percent(row['p_below'])}"


def too_few(row: Mapping[str, Any], audit: Audit, words: Words) -> str:
    """Explain the verdict "too few judgements"."""
    need = "is" if audit.min_judgements == 1 else "are"
    return f"{counted(int(row['judgements']), *words)}, and {audit.min_judgements} {need} needed"


# ---------------------------------------------------------------- agreement and data


def matrix(numbers: Mapping[str, Any], data: Judgements) -> str:
    """Describe the agreement matrix, and which judges are in it."""
    judge = data.judge
    shown, many = len(numbers["annotators"]), plural_noun(judge)
    if shown == 1:
        return f"There is a single {judge} with answers, so there is no agreement to show."
    if numbers["mean"] is None:
        return (
            f"No two of these {many} answered the same question, so there is no agreement to show."
        )
    if shown < numbers["with_answers"]:
        among = (
            f"the {shown} that matter most of {numbers['of']:,}: those in question with most"
            " answers, and the most active"
        )
    elif shown == numbers["of"]:
        among = f"all {many} with answers"
    else:
        among = f"the {shown} of {numbers['of']} with answers"
    same = (
        "answered the same question gave the same answer in"
        if data.listed
        else "ranked the same two items put them in the same order in"
    )
    ties = " A tie is half an answer for each side here." if getattr(data, "tied", False) else ""
    return (
        f"Shown are {among}, those most probably below the threshold first. Two of these who {same}"
        f" {percent(numbers['mean'])} of cases, on average over pairs of them; two who answer by"
        f" chance would in {percent(numbers['by_chance'])}.{ties}"
    )


def chance(data: Judgements) -> str:
    """Define agreement by chance."""
    if data.pair is not None or not data.listed:  # Of rankings pairs of items are compared.
        return f"Two {plural_noun(data.judge)} who guess agree half of the time by chance."
    return (
        f"Agreement by chance is that of two {plural_noun(data.judge)} who answer without looking"
        f" at the question, each answer as often as all {plural_noun(data.judge)} together give it."
    )


def data_sentence(sizes: Mapping[str, Any], data: Judgements, words: Words) -> str:
    """Give the sizes of the data in one sentence."""
    judges = plural_noun(data.judge)
    # Axes of the question come before the judgements; see `data_facts`.
    names = list(sizes)
    others = [name for name in names[: names.index(words.many)] if name != judges]
    text = f"{counted(sizes[words.many], *words)} by {counted(sizes[judges], data.judge, judges)}"
    if others:
        text += " on " + joined(
            [counted(sizes[name], _singular(name, data), name) for name in others]
        )
    if "classes" in sizes:
        axis = data.axes[data.answer]
        name = "class" if data.known is not None else axis
        text += f", of {counted(len(sizes['classes']), name, plural_noun(name))}"
    if known := sizes.get("known_truths", 0):
        text += f"; the true class of {counted(known, data.unit, plural_noun(data.unit))} was given"
    return f"{text}."


def _singular(many: str, data: Judgements) -> str:
    return next(axis for axis in data.names if plural_noun(axis) == many)


def limits(data: Judgements, words: Words, audit: Audit) -> list[str]:
    """List what a verdict does not say, for any kind of judgement."""
    judges = plural_noun(data.judge).capitalize()
    crowd = (
        f"That the crowd is right. {judges} are measured against what all {words.many} together"
        " say; where most make the same mistake, the one who does not looks bad."
    )
    anchored = (
        "That the known truths are a fair sample. Questions that were chosen because they are in"
        " doubt make the crowd look worse than it is, and easy ones better."
    )
    on_crowd = audit.anchor.is_missing or audit.anchor.crowd
    return [
        "That anybody was careless or meant harm. Who misread the instructions, or sees the"
        " questions differently for good reasons, looks the same from here.",
        crowd if on_crowd else anchored,
        f"Anything beyond the model. If it does not fit these {words.many}, the probabilities are"
        " not those of real people: read some of them before you act.",
    ]
