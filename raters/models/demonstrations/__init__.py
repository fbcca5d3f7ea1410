"""Models of demonstrations."""

from raters.models.demonstrations.policies import BehaviouralCloning, MaxEntIRL

__all__ = ["BehaviouralCloning", "MaxEntIRL"]
