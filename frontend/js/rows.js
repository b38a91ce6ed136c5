// The row that is open beside a list is marked, also after it was opened by a key (keys.js).
import { $$, on } from './dom.js';

const rowOf = (link) => link.closest('tr') || link;

on('htmx:afterSwap', () => {
  $$('[data-row][hx-push-url]').forEach((link) => {
    const current = new URL(link.href).pathname === location.pathname;
    if (current) rowOf(link).setAttribute('aria-current', 'true');
    else rowOf(link).removeAttribute('aria-current');
  });
});
