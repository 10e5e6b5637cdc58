"""How good a model is: test scales, ways of predicting, scores, equivariance errors, reports.  `figures/` draws,
`reproduce/` trains and measures a whole table.

May import: `segmentation` and the rooms below.  Begin with `run.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.evaluation.confusions import counts, images_of
    from seunet.evaluation.demo import SCALES, Shown, System, agreement, at_scales, counts_table, sample
    from seunet.evaluation.demo_rival import RivalFacts, pack_rival, unpack_rival
    from seunet.evaluation.equivariance import assert_equivariant, error_matrix, interior, squared_ratio, without_mean
    from seunet.evaluation.equivariance_report import EquivarianceSettings, measure_equivariance
    from seunet.evaluation.page import Block, Heading, as_html, as_markdown, markdown_table, write_pictures
    from seunet.evaluation.predictors import blind, scaled_filters, stated
    from seunet.evaluation.report_folder import read_report
    from seunet.evaluation.run import EvaluationSettings, evaluate
    from seunet.evaluation.test_scales import TEST_SCALES, parsed_scales, scale_label
    from seunet.evaluation.way_names import way_name, with_new_names
else:
    __getattr__, __dir__ = door(__name__)
