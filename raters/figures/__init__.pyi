from .audits import checks as checks
from .audits import competences as competences
from .audits import confusions as confusions
from .audits import learning_curves as learning_curves
from .fits import item_person_map as item_person_map
from .fits import leaderboard as leaderboard
from .fits import profiles as profiles
from .fits import ranks as ranks

__all__: list[str]
