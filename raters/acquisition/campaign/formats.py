"""Questions and answers in the formats of Label Studio and Argilla, so that people can answer
there.

Neither package is needed: the formats are JSON. They were checked against label-studio-sdk 2.1 and
argilla 2.8, and are documented at https://labelstud.io/guide/tasks (tasks),
https://labelstud.io/guide/task_format (annotations), https://labelstud.io/tags/pairwise and
https://labelstud.io/tags/choices (interfaces), and
https://docs.argilla.io/latest/how_to_guides/import_export/ (records and settings).
"""

from raters.acquisition.campaign.argilla import argilla_settings, from_argilla, to_argilla
from raters.acquisition.campaign.exports import Imported
from raters.acquisition.campaign.label_studio import (
    from_label_studio,
    label_studio_config,
    to_label_studio,
)

__all__ = [
    "Imported",
    "argilla_settings",
    "from_argilla",
    "from_label_studio",
    "label_studio_config",
    "to_argilla",
    "to_label_studio",
]
