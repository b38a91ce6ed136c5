"""Support: what tests of several folders share: builders, doubles, local servers, corpora and helper processes."""
