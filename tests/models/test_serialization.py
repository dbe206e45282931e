import pytest

import shoal
from shoal import ParameterError
from shoal.models import MODELS, AlphaK, BetaLikeness, DeltaDisclosure, LDiversity, PSensitive, TCloseness
from shoal.models.serialization import as_models, model_of, settings_in, settings_of

ASKED = [
    TCloseness("salary", t=0.1),
    TCloseness("salary", t=1, weight=0),
    LDiversity("diagnosis", l=3),
    LDiversity("diagnosis", l=2, kind="recursive", c=1.5),
    PSensitive("diagnosis", p=2),
    DeltaDisclosure("smoker", delta=1.5),
    AlphaK("diagnosis", alpha=0.4),
    BetaLikeness("diagnosis", beta=1.5, kind="enhanced"),
]


@pytest.mark.parametrize("model", ASKED, ids=str)
def test_a_model_written_down_and_read_again_is_the_same(model):
    assert model_of(settings_of(model)) == model


def test_one_model_several_and_tables_of_a_job_are_all_taken():
    model = TCloseness("salary", t=0.1)

    assert as_models(model) == as_models([settings_of(model)]) == as_models(iter([model])) == (model,)
    assert as_models(()) == ()


@pytest.mark.parametrize("given", ["t-closeness", 3, None, [3], [None]])
def test_what_is_no_model_is_refused(given):
    with pytest.raises(ParameterError, match="Expected a model such as"):
        as_models(given)


def test_what_has_its_default_is_not_written_down():
    assert settings_of(TCloseness("salary", t=0.1)) == {"model": "t-closeness", "column": "salary", "t": 0.1}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_its_name_in_the_registry_and_is_reached_from_shoal(name):
    assert MODELS[name].name == name
    assert getattr(shoal, MODELS[name].__name__) is MODELS[name]
    assert next(setting.name for setting in settings_in(MODELS[name])) == "column"


@pytest.mark.parametrize("model", ASKED, ids=str)
def test_every_model_says_what_it_promises_without_jargon_alone(model):
    assert model.promise.endswith(".")
    assert model.column in model.promise
    assert model.name in model.promise


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"The name of a model is missing\. Models: t-closeness"),
        ({"model": ["t-closeness"]}, r"The name of a model is not a text\. Models: t-closeness"),
        ({"model": "t-closness"}, "Unknown model 't-closness'. Did you mean 't-closeness'?"),
        ({"model": "t-closeness", "column": "a"}, "t-closeness needs t"),
        ({"model": "t-closeness", "column": "a", "t": 0.1, "wight": 2}, "no setting 'wight'. Did you mean 'weight'?"),
        ({"model": "t-closeness", "column": "a", "t": "0.1"}, "t must be a number"),
        ({"model": "t-closeness", "column": "a", "t": True}, "t must be a number"),
        ({"model": "l-diversity", "column": "a", "l": 2.5}, "l must be a whole number"),
        ({"model": "l-diversity", "column": 3, "l": 2}, "column must be a string"),
        ({"model": "l-diversity", "column": "a", "l": 2, "c": 2.0}, "no other kind takes one"),
        ({"model": "t-closeness", "column": "a", "t": 0}, "t must be above 0"),
        ({"model": "t-closeness", "column": "a", "t": 1.5}, "at most 1"),
        ({"model": "t-closeness", "column": "a", "t": 0.5, "weight": -1}, "weight must be"),
    ],
)
def test_settings_that_make_no_model_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        model_of(settings)


@pytest.mark.parametrize("bad", ["0.1", True, None, float("nan"), [0.1]])
def test_a_bound_that_is_no_number_is_refused_where_the_model_is_made(bad):
    with pytest.raises(ParameterError, match="t must be"):
        TCloseness("salary", t=bad)
    with pytest.raises(ParameterError, match="delta must be"):
        DeltaDisclosure("salary", delta=bad)
