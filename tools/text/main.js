// Which words does a text have, in any language? Node.js knows where words begin in languages that put no spaces between them.
//
// The hub's interface for programs: arguments as JSON on stdin, the result as JSON on descriptor 3, the call's context in
// TOOLHUB_CALL. Ending with another status than 0, what is on descriptor 3 is a refusal: {code, message, details}.
"use strict";

const fs = require("node:fs");

const RESULT = 3;

class Refusal extends Error {
  constructor(code, message, details = {}) {
    super(message);
    this.answer = { code, message, details };
  }
}

function segmenterFor(locale, granularity) {
  try {
    return new Intl.Segmenter(locale, { granularity });
  } catch (error) {
    throw new Refusal("INVALID_ARGUMENT", `${locale} is not the name of a language.`, { locale });
  }
}

function count({ text, locale, most_frequent: most = 10 }) {
  const language = locale ?? JSON.parse(process.env.TOOLHUB_CALL ?? "{}").locale ?? "en-US";
  const counts = new Map();
  let words = 0;
  for (const { segment, isWordLike } of segmenterFor(language, "word").segment(text)) {
    if (isWordLike) {
      const word = segment.toLocaleLowerCase(language);
      counts.set(word, (counts.get(word) ?? 0) + 1);
      words += 1;
    }
  }
  const sentences = [...segmenterFor(language, "sentence").segment(text)].filter(({ segment }) => segment.trim());
  const inOrder = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return {
    language,
    characters: [...segmenterFor(language, "grapheme").segment(text)].length,
    words,
    distinct_words: counts.size,
    sentences: sentences.length,
    most_frequent: inOrder.slice(0, most).map(([word, times]) => ({ word, times })),
  };
}

try {
  fs.writeFileSync(RESULT, JSON.stringify(count(JSON.parse(fs.readFileSync(0, "utf8")))));
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  fs.writeFileSync(RESULT, JSON.stringify(error.answer));
  process.exitCode = 1;
}
