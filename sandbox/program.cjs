"use strict";
// How does a tool in JavaScript end that is ended by an exception? It says which, and what was refused, on descriptor 3
// (programs.py reads it). Loaded before the tool.

const fs = require("node:fs");

const RESULT = 3;
const MOST_CAUSES = 16;

function failureOf({ code, syscall, path, address, hostname, port }) {
  const call = String(syscall || "").split(" ")[0];
  if (call === "spawn" || call === "execve") return ["proc", String(path), String(code)];
  const host = hostname || address;
  if (host) return ["net", port ? `${host}:${port}` : String(host), String(code)];
  return path ? ["fs", String(path), String(code)] : null;
}

function failuresOf(error) {
  const found = [];
  const waiting = [error];
  for (let left = MOST_CAUSES; left > 0 && waiting.length; left -= 1) {
    const each = waiting.pop();
    if (each === null || typeof each !== "object") continue;
    const failure = each.code ? failureOf(each) : null;
    if (failure) found.push(failure);
    waiting.push(each.cause, ...(Array.isArray(each.errors) ? each.errors.reverse() : []));
  }
  return found;
}

process.on("uncaughtExceptionMonitor", (error) => {
  try {
    const type = (error && error.constructor && error.constructor.name) || typeof error;
    const message = String((error && error.message) || error);
    fs.writeSync(RESULT, JSON.stringify({ exception: { type, message, failures: failuresOf(error) } }));
  } catch {
    // It ends all the same, without a word.
  }
});
