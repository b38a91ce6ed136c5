"""Commerce: what the demonstration shop knows, and which tools answer for it.

Seven tools over data files that ship with this package: prices, stock, carriers' rates, duty and tax rules, rules on
restricted goods and a small collection of help articles. All figures are demonstration data. The package uses the
standard library only, reads its files through ``importlib.resources`` and so works from a folder and from a zip file.
"""
