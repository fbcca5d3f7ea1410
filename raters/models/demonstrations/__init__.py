"""Models of demonstrations."""

from raters.models.demonstrations.behavioural_cloning import BehaviouralCloning
from raters.models.demonstrations.max_ent_irl import MaxEntIRL

__all__ = ["BehaviouralCloning", "MaxEntIRL"]
