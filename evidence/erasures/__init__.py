"""Erasures: how a person is forgotten, which parts hold values of persons, and texts that name somebody."""
