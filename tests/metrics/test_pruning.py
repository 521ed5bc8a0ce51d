import numpy as np
import pytest
import transformers

from neuronkit import InputError
from neuronkit.metrics import pruning


def test_the_share_of_parameters_is_that_of_the_fixtures():
    roberta = transformers.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)
    roberta.architectures = ["RobertaForMaskedLM"]
    assert pruning.parameter_fraction(roberta, 0.02, 9) == pytest.approx(0.665982193875635, abs=1e-12)
    mini = transformers.BertConfig(
        vocab_size=30522, hidden_size=384, intermediate_size=1536, num_hidden_layers=6, num_attention_heads=12
    )
    expected = (0.8470343433532266, 0.7960457911376355, 0.7450572389220443, 0.6940686867064532)
    for layers, share in zip((3, 4, 5, 6), expected, strict=True):
        assert pruning.parameter_fraction(mini, 0.02, layers) == pytest.approx(share, abs=1e-12)
    assert pruning.parameter_fraction(mini, 0.02, [0, 2, 5]) == pruning.parameter_fraction(mini, 0.02, 3)
    assert pruning.parameter_fraction(mini, 1.0, 6) == 1


def test_kept_units_are_the_top_of_the_layers_that_are_pruned():
    scores = np.array([0.5, 0.9, 0.7, 0.6, 0.6, 0.8, 0.7, 0.9])
    assert np.flatnonzero(pruning.kept_units(scores, [4, 4], 0.5, 1)).tolist() == [0, 1, 2, 3, 5, 7]
    assert np.flatnonzero(pruning.kept_units(scores, [4, 4], 0.25, [0])).tolist() == [1, 4, 5, 6, 7]
    assert pruning.kept_units(scores, [4, 4], 1.0, 2).all()


@pytest.mark.parametrize(
    ("keep", "layers", "says"),
    [
        (0.0, 1, "keep is 0.0"),
        (1.1, 1, "keep is 1.1"),
        (0.1, 1, "less than one of 4"),
        (0.5, 3, "the model has 2"),
        (0.5, 0, "the model has 2"),
        (0.5, [2], "the model has 2"),
        (0.5, [], "name 1 or more"),
    ],
)
def test_bad_input(keep, layers, says):
    with pytest.raises(InputError, match=says):
        pruning.kept_units(np.zeros(8), [4, 4], keep, layers)
