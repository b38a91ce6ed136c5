// Progress, menus, copying, toasts, and where the focus goes after a swap.
import { $, $$, on, sentence, toast } from './dom.js';

let pending = 0;
let timer;
on('htmx:beforeRequest', () => { if (!pending++) timer = setTimeout(() => document.body.classList.add('busy'), 150); });
on('htmx:afterRequest', () => { if (!--pending) { clearTimeout(timer); document.body.classList.remove('busy'); } });

// A problem comes as a fragment whose first heading says what happened; anything else gets the general sentence.
on('htmx:responseError', ({ detail: { xhr } }) => {
  const title = new DOMParser().parseFromString(xhr.responseText, 'text/html').querySelector('[data-problem-title]');
  toast(title?.textContent.trim() || `${sentence('failed')} (${xhr.status})`);
});
on('htmx:sendError', () => toast(sentence('offline')));

// What somebody has unfolded stays so in what comes in its place by itself.
let unfolded = [];
const nameOf = (details) => $('summary', details)?.textContent.trim();
on('htmx:beforeSwap', ({ detail: { target, requestConfig } }) => {
  unfolded = requestConfig?.triggeringEvent?.type === 'live' ? $$('details[open]', target).map(nameOf) : [];
});

on('htmx:afterSwap', ({ target }) => {
  $$('details', target).filter((each) => unfolded.includes(nameOf(each))).forEach((each) => { each.open = true; });
  const alert = target.matches?.('[role=alert]') ? target : $('[role=alert]', target);
  // what had the focus may be gone: without a place, the next Tab would start at the top of the page
  if (alert) alert.focus();
  else if (document.activeElement === document.body) $('#main')?.focus({ preventScroll: true });
});

// what went wrong is read first, also after a whole page came; but not by who has gone on to something else since
if (document.activeElement === document.body) $('main [role=alert]')?.focus();

on('click', (event) => {
  $$('details.menu[open]').forEach((menu) => menu.contains(event.target) || menu.removeAttribute('open'));
  const target = event.target.closest('[data-copy],[data-dismiss]');
  if (!target) return;
  if ('dismiss' in target.dataset) target.closest('.toast').remove();
  else copy(target);
});

async function copy(button) {
  const text = button.dataset.copy.startsWith('/') ? location.origin + button.dataset.copy : button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
    toast(sentence('copied'), 'ok');
  } catch {
    toast(sentence('uncopied')); // no permission, or not a secure context: the value stays selectable
  }
}

on('keydown', (event) => {
  if (event.key !== 'Escape') return;
  $$('details.menu[open]').forEach((menu) => { menu.removeAttribute('open'); $('summary', menu).focus(); });
});
