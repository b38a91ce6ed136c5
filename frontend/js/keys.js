// Keys that move about the console. None of them changes data; single keys act only while nobody types, and can be switched off
// (WCAG 2.1.4): then the page has no data-keys.
import { $, $$, on } from './dom.js';

const TYPED = 'input,textarea,select,[contenteditable]';
const G_MS = 1500; // so long after a G a letter belongs to it
let lastG = -Infinity;

const isOpen = () => $('dialog[open]');
const singleKeys = () => 'keys' in document.documentElement.dataset;

function openPalette() {
  const palette = $('#palette');
  if (!palette) return $('main [type=search]')?.focus(); // the page of finding is itself what the palette is
  if (palette.open) return undefined;
  isOpen()?.close();
  palette.showModal();
  const box = $('#palette-q');
  box.select();
  return box.form.dispatchEvent(new Event('opened'));
}

function openShortcuts() {
  const dialog = $('#shortcuts');
  if (dialog && !dialog.open) dialog.showModal();
}

// Rows of the list that has the focus, otherwise of the first one of the open dialog or of the page.
function moveRow(step, from) {
  const list = from.closest?.('[data-rows]') || $('[data-rows]', isOpen() || $('main'));
  const links = list ? $$('[data-row]', list) : [];
  const at = links.indexOf(from.closest?.('[data-row]'));
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step))];
  if (!next) return false;
  next.focus();
  if (next.hasAttribute('hx-get')) next.click(); // a row that opens beside the list; a whole page waits for Enter
  return true;
}

const SINGLE = {
  j: (event) => moveRow(1, event.target),
  k: (event) => moveRow(-1, event.target),
  '/': () => { const box = $('main [type=search]'); if (box) box.focus(); else openPalette(); return true; },
  '?': () => { openShortcuts(); return true; },
  g: (event) => { lastG = event.timeStamp; return true; },
};

function goTo(letter) {
  const link = $(`[data-go="${CSS.escape(letter)}"]`);
  if (link) location.assign(link.href);
  return Boolean(link);
}

on('keydown', (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const key = event.key.toLowerCase();
  if (key === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    openPalette();
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const palette = event.target.closest?.('#palette');
  if (palette && (key === 'arrowdown' || key === 'arrowup')) {
    const first = key === 'arrowup' && event.target === $('[data-row]', palette);
    if (first) $('#palette-q').focus();
    else if (key === 'arrowdown' || !event.target.matches(TYPED)) moveRow(key === 'arrowdown' ? 1 : -1, event.target);
    event.preventDefault();
    return;
  }
  if (!singleKeys() || isOpen() || event.target.matches?.(TYPED)) return;
  const follows = event.timeStamp - lastG < G_MS;
  lastG = -Infinity;
  if (follows ? goTo(key) : SINGLE[key]?.(event)) event.preventDefault();
});

// Enter in the palette opens the best that was found; what was found for another text is first asked for anew.
on('submit', (event) => {
  const best = event.target.closest('#palette') && $('#palette [data-row]');
  if (best && $('#found').dataset.for === $('#palette-q').value.trim()) location.assign(best.href);
});

on('click', (event) => {
  const opener = event.target.closest('[data-palette],[data-shortcuts]');
  if (opener && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.button) {
    if ('palette' in opener.dataset) openPalette();
    else { opener.closest('details')?.removeAttribute('open'); openShortcuts(); }
    event.preventDefault();
  }
  if (event.target.matches('dialog[open]')) event.target.close(); // beside it
});
