from .audits import auditor as auditor
from .audits import certainty as certainty
from .audits import competences as competences
from .audits import confusions as confusions
from .audits import levels as levels
from .audits import position_bias as position_bias
from .checks import checks as checks
from .checks import choice_shares as choice_shares
from .checks import dependence as dependence
from .curves import learning_curves as learning_curves
from .curves import reliability as reliability
from .curves import weights as weights
from .fits import item_person_map as item_person_map
from .fits import ranks as ranks
from .fits import rewards as rewards
from .types import profiles as profiles
from .types import responsibilities as responsibilities

__all__: list[str]
