// The three words the other modules share, and how a sentence reaches the person.
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
export const on = (type, handler) => document.addEventListener(type, handler);

// Sentences are translated on the server and wait in the page: <div id="toasts" data-offline="…">.
export const sentence = (name) => $('#toasts')?.dataset[name] ?? '';

export function toast(text, tone = 'bad') {
  const box = document.createElement('div');
  box.className = 'toast';
  box.dataset.tone = tone;
  const line = document.createElement('p');
  line.textContent = text;
  box.append(line);
  $('#toasts').append(box);
  setTimeout(() => box.remove(), 10000);
}
