"""The tables of the paper again: a protocol says what is trained and measured; a report says what came of it.

May import: what `evaluation` may.  Begin with `protocol.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.evaluation.reproduce.plan import pace_of
    from seunet.evaluation.reproduce.protocol import jobs, read_protocol
    from seunet.evaluation.reproduce.report import page
    from seunet.evaluation.reproduce.run import read_measured
    from seunet.evaluation.reproduce.statistics import statistics_of
    from seunet.evaluation.reproduce.tables import grouped
else:
    __getattr__, __dir__ = door(__name__)
