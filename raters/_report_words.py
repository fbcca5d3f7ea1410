"""The sentences of a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from raters._facts import percent

if TYPE_CHECKING:
    from raters.audit import Audit

# From this probability on, what is wrong with an annotator is said without "perhaps".
CLEAR = 0.8
# By whether labels were audited.
NOT_SAID = {
    False: [
        "That anybody was careless or meant harm. Who misread the instructions, or sees the questions differently for good "
        "reasons, looks the same from here.",
        "That the crowd is right. Annotators are measured against what all votes together say; where most make the same "
        "mistake, the one who does not looks bad.",
        "Anything beyond the model. If it does not fit these votes, the probabilities are not those of real people: read some "
        "of the votes before you act.",
    ],
    True: [
        "That anybody was careless or meant harm. Who misread the instructions, or sees the items differently for good "
        "reasons, looks the same from here.",
        "That the crowd is right. Where no true class was given, annotators are measured against what all labels together say; "
        "where most make the same mistake, the one who does not looks bad.",
        "Anything beyond the model. It takes errors as independent; where an item misleads many annotators at once, more item "
        "labels are wrong than it expects. Check a sample by hand.",
    ],
}


def listing(names: Sequence[Any], most: int = 6) -> str:
    """Names as a sentence has them, shortened."""
    shown = [str(name) for name in (names if len(names) <= most else names[: most - 1])]
    if len(names) > most:
        shown.append(f"{len(names) - len(shown):,} others")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things, in the singular where it is one."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def about(number: float) -> str:
    """An expected number, as exactly as it is worth saying."""
    return f"{number:,.0f}" if number >= 20 else f"{number:.1f}" if number >= 0.95 else f"{number:.2f}"


# ---------------------------------------------------------------- the answer


def answer(numbers: dict[str, Any], found: Audit) -> str:
    """Who should go, in one sentence."""
    counts, total = numbers["counts"], sum(numbers["counts"].values())
    drop, review, keep, unjudged = (counts[verdict] for verdict in ("drop", "review", "keep", "not enough votes"))
    enough = counted(found.min_votes, _word(found))
    if total == 1:
        named = "".join(f" ({name})" for name in numbers["flagged"] + numbers["review"])
        what = "should go" if drop else "should be looked at" if review else "can stay"
        return f"The only annotator{named} {f'cannot be judged: there are fewer than {enough}' if unjudged else what}."
    crowd = counted(total, "annotator")
    if unjudged == total:
        return f"Nobody can be judged: none of {crowd} has {enough} or more."
    few = f" {unjudged:,} {'has' if unjudged == 1 else 'have'} too few {_word(found)}s to be judged." if unjudged else ""
    if not drop and not review:
        return (f"All {crowd} can stay." if not unjudged else f"None of {crowd} should go; {keep:,} can stay.") + few
    if drop:
        named = f" ({listing(numbers['flagged'])})" if drop <= 3 else ""
        parts = [f"{drop:,} of {crowd} should go{named}"]
        parts += [f"{review:,} should be looked at"] if review else []
    else:
        named = f" ({listing(numbers['review'])})" if review <= 3 else ""
        parts = [f"None of {crowd} should go", f"{review:,} should be looked at{named}"]
    return f"{'; '.join(parts)}; {keep:,} can stay.{few}"


def _word(found: Audit) -> str:
    """What an annotator gives."""
    return "vote" if found.items is None else "label"


def sure(numbers: dict[str, Any], found: Audit, fitted: dict[str, Any]) -> list[str]:
    """How sure that is, and what it costs."""
    counts, said = numbers["counts"], []
    if fitted["settled"]:
        said += [f"Not final: {doubt}." for doubt in fitted["doubts"]]
    else:
        said.append("Not final: the fit has not settled, see “Can the numbers be relied on?”. Do not act on this page yet.")
    if drop := counts["drop"]:
        who = f"Of the {drop:,} who should go" if drop > 1 else "The one who should go"
        good = f"competence is {found.threshold:g} or more after all"
        if drop > 1:
            number, share = about(numbers["expected_wrong_drops"]), percent(numbers["expected_share_of_wrong_drops"])
            said.append(f"{who}, about {number} ({share}) are expected to be good enough: their {good}.")
        else:
            said.append(f"{who} is good enough with probability {percent(numbers['expected_wrong_drops'])}: that {good}.")
    bad = numbers["expected_bad_kept"]
    if (keep := counts["keep"]) == 1:
        said.append(f"The one who can stay is good enough with probability {percent(1 - bad)}.")
    elif keep:
        some = f"about {about(bad)} are expected not to be" if bad >= 0.005 else "all are expected to be"
        said.append(f"Of the {keep:,} who can stay, {some} good enough.")
    if drop or counts["review"]:
        costs, judged = found.costs, " who was judged" if counts["not enough votes"] else ""
        said.append(
            f"Where keeping a bad annotator costs {costs.keep_bad:g}, dropping a good one {costs.drop_good:g} and a review "
            f"{costs.review:g}, acting on the verdicts is expected to cost {about(numbers['expected_cost'])}, and keeping "
            f"everybody{judged} {about(numbers['expected_cost_of_keeping_all'])}."
        )
    if drop:
        share = numbers["votes_of_flagged"] / max(numbers["votes"], 1)
        their = "Those who should go gave" if drop > 1 else "The one who should go gave"
        said.append(f"{their} {numbers['votes_of_flagged']:,} of {counted(numbers['votes'], _word(found))} ({percent(share)}).")
    return said


def reason(row: dict[str, Any], found: Audit) -> str:
    """Why an annotator has this verdict; nothing of those who can stay."""
    of_labels, verdict = found.items is not None, row["verdict"]
    if verdict == "not enough votes":
        need = "is" if found.min_votes == 1 else "are"
        return f"{counted(row['votes'], _word(found))}, and {found.min_votes} {need} needed"
    if verdict == "keep":
        return ""
    idle = row["p_spammer"] if of_labels else row["p_guessing"]
    perhaps = "" if max(row["p_adversarial"], idle) > CLEAR else "perhaps "
    if row["p_adversarial"] > max(idle, 0.5):
        text = perhaps + ("wrong more often than chance" if perhaps else "wrong more often than chance: read upside down?")
    elif idle > 0.5:
        text = perhaps + ("labels that hardly depend on the item" if of_labels else "answers as if by chance")
    elif verdict == "drop":
        text = "right too seldom to be of use"
    else:
        text = "good or bad: the answers so far do not tell"
    return text + (f"; says “{row['bias_class']}” too often" if of_labels and row["bias"] >= 0.1 else "")


# ---------------------------------------------------------------- items and agreement


def ranked(rankings: list[dict[str, Any]], level: float) -> str:
    """What is first and last, and how many neighbours are told apart."""
    if len(rankings) > 1:
        tops = [f"{kind['ranking']['item'].iloc[0]} of type {kind['type']} ({percent(kind['share'])})" for kind in rankings]
        return (
            f"Annotators are of {len(rankings)} types, and each is judged by the ranking of theirs. First is {listing(tops)}."
        )
    table = rankings[0]["ranking"]
    pairs, apart = len(table) - 1, int((table["p_above_next"] >= level).sum())
    first, last = table["item"].iloc[0], table["item"].iloc[-1]
    if pairs == 1:
        told = f"The two are {'' if apart else 'not '}told apart"
    else:
        told = f"Of {pairs:,} neighbours in the ranking, {apart:,} {'is' if apart == 1 else 'are'} told apart"
    return (
        f"{first} is first (with probability {percent(table['p_best'].iloc[0])} the best of all), and {last} last. "
        f"{told} with {percent(level)} probability or more."
    )


def labelled(numbers: dict[str, Any]) -> str:
    """How many item labels are expected to be wrong."""
    known = f" The truth of {numbers['known_truths']:,} was given." if numbers["known_truths"] else ""
    return (
        f"If labelling stops now, {about(numbers['expected_wrong'])} of {counted(numbers['number'], 'item label')} "
        f"({percent(numbers['expected_share_wrong'])}) are expected to be wrong, by this model.{known}"
    )


def matrix(numbers: dict[str, Any], of_labels: bool) -> str:
    """What the matrix shows, and who is in it."""
    shown, what = len(numbers["annotators"]), "items" if of_labels else "pairs"
    if shown == 1:
        return "There is a single annotator with answers, so there is no agreement to show."
    if numbers["mean"] is None:
        return f"No two of these annotators answered on the same {what}, so there is no agreement to show."
    if shown < numbers["with_answers"]:
        among = f"the {shown} that matter most of {numbers['of']:,}: those in question with most votes, and the most active"
    else:
        among = "all annotators with answers" if shown == numbers["of"] else f"the {shown} of {numbers['of']} with answers"
    return (
        f"Shown are {among}, least trusted first. Two of these who answered on the same {what} gave the same answer in "
        f"{percent(numbers['mean'])} of cases, on average over pairs of them; two who answer by chance would in "
        f"{percent(numbers['by_chance'])}. A blank cell: nothing in common."
    )
