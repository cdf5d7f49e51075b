"""Every trained task by its name, the easiest first."""

from collections.abc import Mapping
from types import MappingProxyType

from models.trained.coreference import Coreference
from models.trained.four_heads import FourHeadsTask
from models.trained.induction import Induction
from models.trained.reverse import Reverse
from models.trained.task import Task
from models.trained.translation import Translation

TASKS: Mapping[str, Task] = MappingProxyType({task.name: task for task in (Reverse(), FourHeadsTask(), Coreference(), Induction(), Translation())})
