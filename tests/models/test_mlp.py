import numpy as np
import pytest
import torch
from torch import nn

from neuronkit import InputError
from neuronkit.models import mlp

SETTINGS = [
    {"varied": "l2", "l2": 1e-2, "l1": 0.0, "dropout": 0.0},
    {"varied": "l1", "l2": 1e-5, "l1": 1e-3, "dropout": 0.0},
    {"varied": "dropout", "l2": 1e-5, "l1": 0.0, "dropout": 0.4},
]


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (400, 6, 6), dtype=np.uint8), rng.integers(0, 10, 400)


def masks(seed, epoch, batches, batch, width=64):
    """The dropout draws that the ensemble makes, again: first the order of the images, then two draws a step."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(batches * batch).reshape(-1, batch)
    draws = [[torch.from_numpy(random.random((batch, width), dtype=np.float32)) for _ in range(2)] for _ in order]
    return order, draws


def one_network(x, y, setting, seed, epochs, batch):
    """One plain PyTorch network with autograd and torch.optim.Adam, on the same batches and dropout draws."""
    layers = [nn.Linear(w.shape[1], w.shape[0]) for w, _ in mlp.initial_weights(seed, (x.shape[1], 64, 64, 10))]
    for layer, (w, b) in zip(layers, mlp.initial_weights(seed, (x.shape[1], 64, 64, 10)), strict=True):
        layer.weight.data, layer.bias.data = w, b
    adam = torch.optim.Adam([p for layer in layers for p in layer.parameters()], lr=1e-3)
    p = setting["dropout"]
    for epoch in range(epochs):
        order, draws = masks(seed, epoch, len(x) // batch, batch)
        for index, drawn in zip(order, draws, strict=True):
            a = x[index]
            for layer, draw in zip(layers[:2], drawn, strict=True):
                a = torch.relu(layer(a)) * (draw >= p) / (1 - p)
            weights = [layer.weight for layer in layers]
            loss = nn.functional.cross_entropy(layers[2](a), y[index])
            loss = loss + setting["l1"] * sum(w.abs().sum() for w in weights)
            loss = loss + setting["l2"] * sum(w.square().sum() for w in weights)
            adam.zero_grad()
            loss.backward()
            adam.step()
    return layers


def test_the_ensemble_ends_where_single_networks_end(images):
    x, y = images
    seed, batch, epochs = 5, 36, 5  # 10 batches an epoch of the 360 images of the train part: 50 steps
    trained = mlp.train_ensemble(x, y, settings=SETTINGS, seed=seed, epochs=epochs, batch=batch)
    part, _ = mlp.split(len(x), seed)
    flat = torch.from_numpy(x[part].reshape(len(part), -1)).float() / 255
    for m, setting in enumerate(SETTINGS):
        layers = one_network(flat, torch.from_numpy(y[part]), setting, seed, epochs, batch)
        for ours, theirs in zip(trained["weights"], layers, strict=True):
            assert np.abs(ours["W"][m] - theirs.weight.detach().numpy()).max() < 1e-5
            assert np.abs(ours["b"][m] - theirs.bias.detach().numpy()).max() < 1e-5


def test_the_gradient_is_that_of_autograd(images):
    x, y = images
    x, y = torch.from_numpy(x.reshape(400, -1)[:20]).float() / 255, torch.from_numpy(y[:20])
    x[:, [0, 7, 35]] = 0
    nets = mlp.Ensemble(mlp.initial_weights(1, (36, 64, 64, 10)), SETTINGS, batch=20, lr=1e-3)
    loss = nets.gradients(x, y, np.random.default_rng(3))
    draws = np.random.default_rng(3)
    draw = [torch.from_numpy(draws.random((20, 64), dtype=np.float32)) for _ in range(2)]
    leaves = [p.detach().clone().requires_grad_() for p in nets.parameters]
    a = x.expand(3, 20, 36)
    for layer in range(3):
        a = torch.baddbmm(leaves[layer + 3], a, leaves[layer])
        if layer < 2:
            a = torch.relu(a) * (draw[layer] >= nets.dropout) * nets.scale
    expected = torch.stack([nn.functional.cross_entropy(logits, y) for logits in a])
    expected.sum().backward()
    assert torch.allclose(loss, expected)
    unlit = torch.from_numpy(nets.at < 0)
    assert unlit.sum() == 3 and not leaves[0].grad[:, unlit].any()  # of pixels that are 0 in the whole batch
    theirs = [leaves[0].grad[:, ~unlit], *(leaf.grad for leaf in leaves[1:])]
    for a, b in zip(nets.gW + nets.gb, theirs, strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_initial_weights_are_those_of_seeded_linear_layers():
    torch.manual_seed(286437723)
    layers = [nn.Linear(784, 64), nn.Linear(64, 64), nn.Linear(64, 10)]
    for (w, b), layer in zip(mlp.initial_weights(286437723), layers, strict=True):
        assert torch.equal(w, layer.weight) and torch.equal(b, layer.bias)
    first = mlp.initial_weights(286437723)[0][0][0, :4]
    assert first.tolist() == pytest.approx([-0.0190323852, 0.0027253884, 0.0093557797, 0.0068139182], abs=1e-9)


def test_the_split_is_that_of_random_split():
    a, b = torch.utils.data.random_split(range(60_000), [54_000, 6_000], torch.Generator().manual_seed(7))
    ours = mlp.split(60_000, 7)
    assert ours[0].tolist() == list(a.indices) and ours[1].tolist() == list(b.indices)


def test_table_1_has_the_papers_thirty_settings():
    settings = mlp.table1()
    assert len(settings) == 30
    assert [sum(s["varied"] == v for s in settings) for v in ("l2", "l1", "dropout")] == [9, 7, 14]
    assert [s["dropout"] for s in settings if s["varied"] == "dropout"] == pytest.approx(np.arange(1, 15) * 0.05)
    assert all(s["l2"] == 1e-5 for s in settings if s["varied"] != "l2")
    assert settings[8]["l2"] == pytest.approx(0.1) and settings[15]["l1"] == pytest.approx(0.01)


def test_parts_of_a_run_share_batches_and_dropout(images):
    x, y = images
    whole = mlp.train_ensemble(x, y, settings=SETTINGS, seed=1, epochs=2, batch=36)
    alone = mlp.train_ensemble(x, y, settings=SETTINGS[2:], seed=1, epochs=2, batch=36)
    assert np.allclose(whole["weights"][0]["W"][2], alone["weights"][0]["W"][0], atol=1e-6)
    jobs = mlp.jobs(x, y, runs=2, seed=10, epochs=1)
    assert [j["seed"] for j in jobs] == [10, 10, 11, 11]
    assert [s for j in jobs[:2] for s in j["settings"]] == mlp.table1()


def test_settings_are_found_by_strength_and_trained_again(images):
    at = mlp.at_strengths({"l2": [1e-5, 0.0316228], "l1": [0.00316228], "dropout": [0.3]})
    assert at == [0, 7, 14, 21]
    job = mlp.jobs(*images, runs=1, seed=4, epochs=9)[0]
    first, second = mlp.retrained(job, at, epochs=30)
    assert [mlp.table1()[i] for i in at] == first["settings"] + second["settings"]
    assert first["epochs"] == second["epochs"] == 30 and first["seed"] == 4 and job["epochs"] == 9
    assert mlp.retrained(job, [], epochs=30) == [] and len(mlp.retrained(job, [3], epochs=30)) == 1


class Stop(Exception):
    pass


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_training_that_was_stopped_ends_with_the_same_bits(images, tmp_path, monkeypatch, early_stopping):
    x, y = images
    monkeypatch.setattr(mlp, "CHECKPOINT_SECONDS", 0.0)
    arguments = {"settings": SETTINGS, "seed": 2, "epochs": 6, "batch": 36, "early_stopping": early_stopping}

    def stops_after_three(steps, what):
        for done, step in enumerate(steps):
            if done == 3:
                raise Stop
            yield step

    whole = mlp.train_ensemble(x, y, **arguments)
    with pytest.raises(Stop):
        mlp.train_ensemble(x, y, **arguments, progress=stops_after_three, checkpoint=tmp_path / "part")
    seen = []
    resumed = mlp.train_ensemble(
        x, y, **arguments, progress=lambda s, what: seen.extend(s) or seen, checkpoint=tmp_path / "part"
    )
    assert seen == [3, 4, 5]
    for a, b in zip(whole["weights"], resumed["weights"], strict=True):
        assert np.array_equal(a["W"], b["W"]) and np.array_equal(a["b"], b["b"])
    assert np.array_equal(whole["loss"], resumed["loss"])


def test_early_stopping_follows_torch_schedules_for_each_network_alone():
    """Against ReduceLROnPlateau (threshold 0) and a plain count of bad epochs, on made-up validation losses."""
    rng = np.random.default_rng(4)
    losses = np.cumsum(rng.normal(-0.02, 0.2, (40, 3)), axis=0)
    nets = mlp.Ensemble(mlp.initial_weights(1, (4, 64, 64, 10)), SETTINGS, batch=2, lr=1e-3)
    stopping = mlp.Stopping(nets)
    rates = []
    for epoch, row in enumerate(losses):
        nets.b[0].fill_(epoch)  # a mark of the epoch in the weights
        stopping.update(nets, row, epoch)
        rates.append(nets.rate.flatten().tolist())
    for m in range(3):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=3, threshold=0)
        best = 0
        for epoch in range(40):
            plateau.step(losses[epoch, m])
            best = epoch if losses[epoch, m] < losses[:epoch, m].min(initial=np.inf) else best
            if epoch - best == 6:
                assert rates[epoch][m] == 0
                break
            assert rates[epoch][m] == pytest.approx(optimizer.param_groups[0]["lr"])
        else:
            raise AssertionError("the losses never stall: change their seed")
        assert stopping.epochs[m] == best + 1
        assert (stopping.best[3][m] == best).all()
    assert stopping.done()


def test_a_network_that_stops_early_is_the_one_trained_alone(images):
    x, y = images
    arguments = {"seed": 3, "epochs": 60, "batch": 36, "early_stopping": True}
    whole = mlp.train_ensemble(x, y, settings=SETTINGS, **arguments)
    assert len(whole["loss"]) < 60  # random labels: the validation loss soon rises
    for m, setting in enumerate(SETTINGS):
        plain = mlp.train_ensemble(x, y, settings=[setting], seed=3, batch=36, epochs=int(whole["epochs"][m]))
        if m != 1:  # with L1, weights hover around zero and rounding decides their sign
            assert np.allclose(whole["weights"][0]["W"][m], plain["weights"][0]["W"][0], atol=1e-3)
    assert mlp.train_ensemble(x, y, settings=SETTINGS, **(arguments | {"early_stopping": False, "epochs": 2}))[
        "epochs"
    ].tolist() == [2, 2, 2]


def test_accuracy_and_statistics(images):
    x, y = images
    trained = mlp.train_ensemble(x, y, settings=SETTINGS, seed=1, epochs=1, batch=36)
    W = [(layer["W"][1], layer["b"][1]) for layer in trained["weights"]]
    a = x.reshape(400, -1) / 255
    for w, b in W[:2]:
        a = np.maximum(a @ w.T + b, 0)
    guess = (a @ W[2][0].T + W[2][1]).argmax(1)
    assert mlp.accuracy(trained["weights"], x, y)[1] == pytest.approx((guess == y).mean())
    found = mlp.weight_statistics(trained["weights"])
    flat = np.concatenate([w.ravel() for w, _ in W]).astype(float)
    assert found["l1_norm"][1] == pytest.approx(np.abs(flat).sum())
    assert found["l2_norm"][1] == pytest.approx((flat**2).sum())
    assert found["sparsity"][1] == pytest.approx((np.abs(flat) < 1e-3).mean())
    both = mlp.statistics(trained, {"image": x, "label": y}, {"image": x, "label": y}, seed=1)
    part, _ = mlp.split(400, 1)
    assert both["train_accuracy"][1] == pytest.approx((guess == y)[part].mean())


def test_networks_are_laid_out_by_run_and_strength():
    x, y = np.zeros((400, 4)), np.arange(400) % 10
    jobs = mlp.jobs(x, y, runs=2, seed=50, epochs=1)
    found = [{"test_accuracy": np.full(len(job["settings"]), 0.9)} for job in jobs]
    found[0]["test_accuracy"][8] = 0.79  # run 0, strongest L2
    networks = mlp.table(jobs, found)
    assert len(networks) == 60 and networks["run"].tolist() == [0] * 30 + [1] * 30
    assert (~networks["kept"]).to_numpy().nonzero()[0].tolist() == [8]
    values = np.stack([np.arange(60.0), -np.arange(60.0)], axis=1)
    strengths, by_run = mlp.series(networks, values, "l2")
    assert strengths == pytest.approx(np.logspace(-5, -1, 9)) and by_run.shape == (2, 9, 2)
    assert np.isnan(by_run[0, 8]).all() and by_run[1, 8].tolist() == [38, -38]
    strengths, by_run = mlp.series(networks, values, "dropout")
    assert strengths == pytest.approx(np.arange(15) * 0.05)
    assert by_run[:, :, 0].tolist() == [[0, *range(16, 30)], [30, *range(46, 60)]]


def test_untrained_networks_are_nearly_dense():
    networks, last = mlp.untrained(np.zeros((2, 784)), np.array([0, 9]), n=5, seed=mlp.SEED + 1000, part=4)
    assert networks["weights"][0]["W"].shape == (4, 64, 784) and networks["weights"][2]["b"].shape == (4, 10)
    assert np.array_equal(last["weights"][0]["W"][0], mlp.initial_weights(mlp.SEED + 1004)[0][0])
    first = mlp.initial_weights(mlp.SEED + 1001)
    assert np.array_equal(networks["weights"][1]["W"][1], first[1][0])
    sparsity = mlp.weight_statistics(networks["weights"])["sparsity"]
    assert sparsity == pytest.approx(np.full(4, 0.03), abs=0.005)  # the paper's figure


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"settings": [{**SETTINGS[0], "l1": -1.0}]}, "below 0"),
        ({"settings": [{**SETTINGS[0], "l2": float("nan")}]}, "below 0"),
        ({"settings": [{**SETTINGS[0], "dropout": 1.0}]}, "dropout is 1.0"),
        ({"settings": []}, "no setting"),
        ({"batch": 1000}, "fewer than one batch"),
        ({"lr": 1e30}, "not finite in epoch"),
    ],
)
def test_bad_input_is_one_sentence(images, change, message):
    arguments = {"settings": SETTINGS, "seed": 1, "epochs": 3, "batch": 36} | change
    with pytest.raises(InputError, match=message):
        mlp.train_ensemble(*images, **arguments)
