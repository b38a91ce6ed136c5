// J and K walk through the rows of a list. They act only while the focus is inside it, so they disturb nobody (WCAG 2.1.4).
import { $$, on } from './dom.js';

const rowOf = (link) => link.closest('tr') || link;

on('htmx:afterSwap', () => {
  $$('[data-row][hx-push-url]').forEach((link) => {
    const current = new URL(link.href).pathname === location.pathname;
    if (current) rowOf(link).setAttribute('aria-current', 'true');
    else rowOf(link).removeAttribute('aria-current');
  });
});

on('keydown', (event) => {
  const step = { j: 1, k: -1 }[event.key.toLowerCase()];
  const list = event.target.closest?.('[data-rows]');
  if (!step || !list || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input,textarea,select')) return;
  const links = $$('[data-row]', list);
  const next = links[Math.min(links.length - 1, Math.max(0, links.indexOf(event.target) + step))];
  next?.focus();
  if (next?.hasAttribute('hx-get')) next.click(); // a row that opens beside the list; a whole page waits for Enter
  event.preventDefault();
});
