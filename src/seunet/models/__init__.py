"""One U skeleton and the ways to fill it; models by name, their files and cards.

May import: `scale`, `layers` and the rooms below.  Begin with `registry.py`, then `unet_skeleton.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.models.card import HeadCalibration, ModelCard
    from seunet.models.files import load, save, weights_sha256
    from seunet.models.heads_to_use import AUTO, NO_RANGE, fusion_of, known_fusions
    from seunet.models.object_rule import MIN_CORE_PX, NECK, SLACK_PX
    from seunet.models.places import model_folder
    from seunet.models.registry import PlainConv2d, create_model, list_models, model_config
    from seunet.models.seunet import SEUNet
    from seunet.models.sureness import second_opinion, sureness_of
    from seunet.models.unet_skeleton import ScaleUNet
else:
    __getattr__, __dir__ = door(__name__)
