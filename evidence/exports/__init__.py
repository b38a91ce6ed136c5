"""Exports: how evidence is taken out of the hub.

Somebody asks for an export (:mod:`~evidence.exports.services`); a keeper makes its content piece by piece
(:mod:`~evidence.exports.jobs`); whoever may, downloads it until it expires (:mod:`~evidence.exports.downloads`).
"""
