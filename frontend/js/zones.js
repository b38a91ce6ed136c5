// Proposes the browser's time zone to whom has not chosen one, where its clocks differ from those of the page.
import { $, on } from './dom.js';

// What clocks show in winter and in summer: places of other names may have the same time.
const clocks = (zone) => [0, 6].map((month) => new Date(Date.UTC(2026, month)).toLocaleString('en', { timeZone: zone })).join();

on('DOMContentLoaded', () => {
  const proposal = $('#zone-proposal');
  const mine = proposal && new Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!mine || clocks(mine) === clocks(proposal.dataset.zone)) return;
  const form = proposal.content.cloneNode(true);
  $('[data-browser-zone]', form).textContent = mine;
  $('[data-take-zone]', form).value = mine;
  const stops = $('#main > .stops'); // what is stopped is said first
  if (stops) stops.after(form);
  else $('#main').prepend(form);
});
