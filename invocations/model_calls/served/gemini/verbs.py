"""Verbs: what Google's addresses say behind a colon that is to be done with a model."""

GENERATE, STREAM, COUNT = "generateContent", "streamGenerateContent", "countTokens"
EMBED, EMBED_BATCH = "embedContent", "batchEmbedContents"
# Those whose bodies may hold pictures.
WIDE_VERBS = (GENERATE, STREAM, COUNT)
VERBS = (*WIDE_VERBS, EMBED, EMBED_BATCH)
