"""Submitted forms: a service runs for a form that is filled in well, and what it refuses stands in the form."""

from __future__ import annotations

import pytest
from django import forms

from kernel.components.forms import submit_form
from kernel.problems import Conflict, Problem, SchemaInvalid


class NameForm(forms.Form):
    name = forms.CharField()


def refuse(problem: Problem) -> str:
    raise problem


@pytest.mark.parametrize("form", [NameForm(), NameForm({})], ids=["not sent", "not filled in"])
def test_a_service_runs_for_no_other_form(form: NameForm) -> None:
    assert submit_form(form, lambda: refuse(Conflict("It ran."))) is None


def test_what_the_service_returns_is_returned() -> None:
    form = NameForm({"name": "a"})

    assert submit_form(form, lambda: form.cleaned_data["name"] + "b") == "ab"


def test_a_problem_stands_at_its_field() -> None:
    form = NameForm({"name": "a"})

    assert submit_form(form, lambda: refuse(SchemaInvalid.at("/name", "It is taken."))) is None
    assert form.errors == {"name": ["It is taken."]}


def test_a_problem_of_another_kind_is_not_a_mistake_in_the_form() -> None:
    form = NameForm({"name": "a"})

    with pytest.raises(Conflict):
        submit_form(form, lambda: refuse(Conflict("Somebody was faster.")), refusals=SchemaInvalid)
