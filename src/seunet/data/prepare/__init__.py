"""A plan → a prepared data set: one job per image, in worker processes that can be killed, resumable.

May import: what `data` may.  Begin with `plan.py`, then `run.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.data.prepare.one_image import Job
    from seunet.data.prepare.plan import Found, Plan, PrepareSettings, make_plan, move_share
    from seunet.data.prepare.pool import JobOutcome, run_jobs
    from seunet.data.prepare.run import prepare
else:
    __getattr__, __dir__ = door(__name__)
