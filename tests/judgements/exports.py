"""Small exports in the forms of the tools, as their documentation and their code have them."""

from __future__ import annotations

import copy

# label-studio-sdk 2.1, and https://labelstud.io/guide/task_format


def _region(name, kind, **value):
    to = "text1,text2" if kind == "pairwise" else "text"
    return {"id": "Dx_aB91ISN", "from_name": name, "to_name": to, "type": kind, "value": value}


def annotation(number, who, *regions, **more):
    whole = {"id": number, "completed_by": who, "result": list(regions), "was_cancelled": False}
    times = {"created_at": "2021-03-09T22:16:08.728353Z", "updated_at": "2021-03-09T22:16:09.0Z"}
    return whole | {"ground_truth": False, "lead_time": 4.288, "task": 1} | times | more


def task(number, *annotations, predictions=(), **data):
    whole = {"id": number, "annotations": list(annotations), "predictions": list(predictions)}
    return whole | {"data": {"text": f"text {number}"} | data, "meta": {}, "project": 83}


def mood(choice):
    return _region("mood", "choices", choices=[choice])


LABEL_STUDIO = [
    task(
        1,
        annotation(101, 1, mood("good"), _region("stars", "rating", rating=4)),
        annotation(102, {"id": 2, "email": "bob@x.org"}, mood("bad")),
        annotation(103, 3, was_cancelled=True),
        predictions=[{"model_version": "bert", "score": 0.9, "result": [mood("good")]}],
    ),
    task(
        2,
        annotation(104, 1, mood("bad"), _region("stars", "rating", rating=2)),
        annotation(105, {"id": 2, "email": "bob@x.org"}, mood("bad")),
        annotation(106, 9, mood("bad"), ground_truth=True),
        annotation(107, 3, mood("good"), _region("box", "labels", start=0, end=4, labels=["X"])),
    ),
    task(3, annotation(108, 3, mood("good"))),
]


def topics(*choices):
    return _region("topics", "choices", choices=list(choices))


LABEL_STUDIO_TOPICS = [
    task(1, annotation(101, 1, topics("a", "b")), annotation(102, 2, mood("good"))),
    task(2, annotation(103, 1, topics("a")), annotation(104, 9, topics("b"), ground_truth=True)),
]
LABEL_STUDIO_PAIRS = [
    task(
        number,
        *(
            annotation(10 * number + who, who, _region("pw", "pairwise", selected=side))
            for who, side in enumerate(sides, 1)
        ),
        model_a="llama",
        model_b="gpt" if number < 3 else "claude",
    )
    for number, sides in enumerate([("left", "right"), ("left", "left"), ("right", "left")], 1)
]
JSON_MIN = [
    {
        "text": f"text {number}",
        "id": number,
        "mood": choice,
        "stars": [{"rating": stars}],
        "topics": {"choices": ["a", "b"]} if number == 1 else "a",
        "annotator": who,
        "annotation_id": 100 + 10 * number + who,
        "created_at": "2021-03-09T22:16:08.728353Z",
        "updated_at": "2021-03-09T22:16:08.728378Z",
        "lead_time": 4.288,
    }
    for number, who, choice, stars in [(1, 1, "good", 4), (1, 2, "bad", 3), (2, 1, "bad", 1)]
]

# argilla 2.8, `argilla.records._io._generic`

ARGILLA = [
    {
        "id": f"r{number}",
        "fields": {"prompt": "what", "reply": f"text {number}"},
        "metadata": {"source": "web"},
        "suggestions": {"mood": {"value": "good", "score": 0.8, "agent": "bert"}},
        "responses": {
            "mood": [{"value": "good", "user_id": "5a4b"}, {"value": said, "user_id": "6c7d"}],
            "stars": [{"value": number, "user_id": "5a4b"}],
            "topics": [{"value": ["a", "b"], "user_id": "5a4b"}],
        },
        "vectors": {},
        "_server_id": f"c0ffee{number}",
    }
    for number, said in enumerate(["good", "bad", "bad"], 1)
]
ARGILLA_FLAT = {
    "id": ["r1", "r2", "r3"],
    "status": ["completed", "completed", "pending"],
    "_server_id": ["c1", "c2", "c3"],
    "reply": ["text 1", "text 2", "text 3"],
    "mood.responses": [["good", "bad"], ["bad", "bad"], None],
    "mood.responses.users": [["5a4b", "6c7d"], ["5a4b", "6c7d"], None],
    "mood.responses.status": [["submitted", "submitted"], ["submitted", "discarded"], None],
    "mood.suggestion": ["good", "good", "bad"],
    "mood.suggestion.agent": ["bert", "bert", None],
    "mood.suggestion.score": [0.8, 0.7, None],
}

# doccano 1.8, `backend/data_export/tests/test_task.py`: one file for each user

DOCCANO = {
    "admin": [
        {"id": 1, "text": "text 1", "label": ["good"], "meta": {}},
        {"id": 2, "text": "text 2", "label": []},
        {"id": 3, "text": "text 3", "label": ["bad"]},
    ],
    "ann": [
        {"id": 1, "text": "text 1", "label": ["bad"]},
        {"id": 2, "text": "text 2", "label": ["bad"]},
        {"id": 3, "text": "text 3", "label": ["bad"]},
    ],
}

# Prodigy 1.15, https://prodi.gy/docs/api-interfaces


def _example(number, who, answer="accept", **more):
    hashes = {"_input_hash": 1000 + number, "_task_hash": -2000 - number, "_timestamp": 1707211049}
    whole = {"text": f"text {number}", "answer": answer, "_view_id": "choice", "meta": {"page": 1}}
    return whole | hashes | {"_session_id": f"news-{who}", "_annotator_id": f"news-{who}"} | more


_MENU = {"options": [{"id": "GOOD", "text": "Good"}, {"id": "BAD", "text": "Bad"}]}
PRODIGY = [
    _example(1, "ann", accept=["GOOD"], **_MENU),
    _example(1, "bob", accept=["BAD"], **_MENU),
    _example(2, "ann", accept=["BAD"], **_MENU),
    _example(2, "bob", "ignore", accept=[], **_MENU),
]
PRODIGY_BINARY = [
    _example(number, who, answer, label="SPORT")
    for number, who, answer in [
        (1, "ann", "accept"),
        (1, "bob", "reject"),
        (2, "ann", "reject"),
        (2, "bob", "ignore"),
    ]
]

# Mechanical Turk, the file of "Review results"

MTURK = """\
"HITId","AssignmentId","WorkerId","AssignmentStatus","Input.text","Answer.mood.good","Answer.mood.bad","Answer.stars","Approve","Reject"
"H1","A1","W1","Approved","text 1","true","false","4","x",""
"H1","A2","W2","Submitted","text 1","false","true","2","",""
"H2","A3","W1","Submitted","text 2","true","false","3","",""
"H2","A4","W3","Rejected","text 2","false","true","1","","No answer"
"H2","A5","W2","Submitted","text 2","true","false","3","",""
"""
MTURK_FORM = [
    {
        "HITId": f"H{number}",
        "WorkerId": who,
        "AssignmentStatus": "Submitted",
        "Input.text": f"text {number}",
        "Answer.taskAnswers": '[{"mood":{"label":"' + said + '"},"sure":{"yes":true}}]',
    }
    for number, who, said in [(1, "W1", "good"), (1, "W2", "bad"), (2, "W1", "bad")]
]

# lmsys/chatbot_arena_conversations, FastChat, and Kaggle lmsys-chatbot-arena


def _talk(text):
    return [{"role": "user", "content": "hi"}, {"role": "assistant", "content": text}]


ARENA = [
    {
        "question_id": f"58210e39b3fd4441a2bd4a518bb44c{number}",
        "model_a": one,
        "model_b": other,
        "winner": winner,
        "judge": f"arena_user_{number % 2}",
        "conversation_a": _talk("a"),
        "conversation_b": _talk("b"),
        "turn": 1,
        "anony": True,
        "language": "English",
        "tstamp": 1682351591.1322,
        "toxic_chat_tag": {"roberta-large": {"flagged": False, "probability": 0.012}},
    }
    for number, (one, other, winner) in enumerate(
        [
            ("koala-13b", "oasst-12b", "model_a"),
            ("oasst-12b", "vicuna-13b", "tie (bothbad)"),
            ("vicuna-13b", "koala-13b", "model_b"),
            ("koala-13b", "oasst-12b", "tie"),
        ]
    )
]
FASTCHAT_PAIRS = [
    {
        "question_id": 81 + number,
        "model_1": "alpaca-13b",
        "model_2": "gpt-4",
        "g1_winner": first,
        "g2_winner": second,
        "judge": ["gpt-4", "pair-v2"],
        "g1_user_prompt": "...",
        "turn": 1,
        "tstamp": 1687222552.5,
    }
    for number, (first, second) in enumerate([("model_2", "model_2"), ("model_1", "error")])
]
KAGGLE = {
    "id": ["30192", "53567"],
    "model_a": ["gpt-4-1106-preview", "koala-13b"],
    "model_b": ["gpt-4-0613", "gpt-4-0613"],
    "prompt": ['["Is it morally right"]', '["What is"]'],
    "winner_model_a": ["1", "0"],
    "winner_model_b": ["0", "0"],
    "winner_tie": ["0", "1"],
}

# inspect_ai 0.3, `tests/analysis/test_logs` of its repository


def inspect_log(model, letters, numbers):
    samples = [
        {
            "id": number,
            "epoch": 1,
            "input": "How do I prevent SQL Injection attacks?",
            "target": "use parameterized queries",
            "scores": {
                "model_graded_fact": {"value": letter, "answer": "...", "explanation": "..."},
                "match": {"value": right},
            },
        }
        for number, (letter, right) in enumerate(zip(letters, numbers, strict=True), 1)
    ]
    about = {"task": "security_guide", "model": model, "dataset": {"samples": len(samples)}}
    return {"version": 2, "status": "success", "eval": about, "samples": samples}


INSPECT = inspect_log("openai/gpt-4o-mini", "CIC", (1, 1, 0))

LISTS = {
    "id": [1, 2],
    "text": ["text 1", "text 2"],
    "labels": [[0, 1, 1], [1, 1]],
    "annotators": [["a", "b", "c"], ["a", "c"]],
}
WIDE = {"id": ["x", "y", "z"], "ann": ["no", "no", "yes"], "bob": ["no", "yes", None]}

EXPORTS = {
    "Label Studio": LABEL_STUDIO,
    "pairs": LABEL_STUDIO_PAIRS,
    "JSON-MIN": JSON_MIN,
    "Argilla": ARGILLA,
    "rows of Argilla": ARGILLA_FLAT,
    "doccano": DOCCANO["admin"],
    "Prodigy": PRODIGY,
    "binary": PRODIGY_BINARY,
    "Mechanical Turk": MTURK_FORM,
    "arena": ARENA,
    "FastChat": FASTCHAT_PAIRS,
    "Kaggle": KAGGLE,
    "inspect_ai": INSPECT,
    "lists": LISTS,
    "wide": WIDE,
}


def changed(content, path, value):
    """A copy of nested content with another value at a place."""
    whole = copy.deepcopy(content)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return whole


def places(content, path=()):
    """All places of nested content."""
    keys = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in keys:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))
