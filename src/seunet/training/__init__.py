"""Learning from prepared data: the config, the loop, one step of it, validation, checkpoints; a stopped run resumes to
the same bytes.

May import: `data`, `models` and the rooms below.  Begin with `loop.py`.
"""

from seunet.doors import TYPE_CHECKING, door

if TYPE_CHECKING:
    from seunet.training.checkpoint import (
        Checkpoint,
        model_of,
        model_tensors,
        optimizer_tensors,
        read_checkpoint,
        write_checkpoint,
    )
    from seunet.training.config import RecipeSection, TrainingConfig, checked_config, read_config
    from seunet.training.distributed import Processes, joined
    from seunet.training.loading import Sources, batches
    from seunet.training.loop import train
    from seunet.training.new_model import card_of, make_model
    from seunet.training.observers import Observer, TrainingOutcome, peak_memory_bytes
    from seunet.training.optimizer import Pace, make_optimizer, set_pace
    from seunet.training.run_folder import RunFolder
    from seunet.training.trainer import Batch, Trainer, collate
    from seunet.training.validation import ious_of, validation_counts
else:
    __getattr__, __dir__ = door(__name__)
