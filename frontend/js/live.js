// Live: pages hear that something is new, and ask for it at their own addresses. All tabs of a browser share one stream: the tab that holds
// a lock has it, and says what it hears to the others. Hidden tabs hold nothing and ask nothing; they catch up when they are seen again.
// <div id="export" data-live="exports" hx-get="…" hx-trigger="live"> is fetched when there is news of exports, at most every two
// seconds (data-live-every); with data-live-list its rows are not moved: how many are newer is said, and who wants to see them says so.
// data-live-calm: nothing of it is unfinished, so that news alone is a reason to ask for it.
import htmx from 'htmx.org/dist/htmx.esm.js';
import { $, $$, on, sentence } from './dom.js';

const NAME = 'toolhub-live';
const EVERYTHING = '*';
const PAUSED = 'live-paused'; // in localStorage, for all tabs
const [FIRST_DELAY, POLL_DELAY, LONGEST_DELAY] = [2000, 10000, 60000];

const button = $('#live');
const channel = button && 'BroadcastChannel' in window ? new BroadcastChannel(NAME) : null;
let leaving = null; // AbortController of being, or waiting to be, the tab that has the stream
let release = null; // gives the lock back
let source = null;
let timer = null;
let failures = 0;
let missed = false; // something may have been said while nobody listened
let began = 0; // to wait for the stream
let settled = false;
let over = false; // signed out, or not allowed: nothing more is tried on this page

const paused = () => localStorage.getItem(PAUSED) === '1';
const wanted = () => !document.hidden && !paused() && !over;

function show(state) {
  if (state === 'live' && !settled) settle();
  button.dataset.state = state;
  $$('[data-when]', button).forEach((each) => { each.hidden = each.dataset.when !== state; });
}

// What went on between this page being drawn and the stream being there nobody was told: what is unfinished is asked for once.
function settle() {
  settled = true;
  $$('[data-live][hx-get][id]:not([data-live-calm])').forEach(({ id }) => { fired.set(id, performance.now()); ask(id); });
}

function say(state) { // the tab that has the stream, for all
  show(state);
  channel?.postMessage({ state });
}

// What of the page wants to hear of a topic.

const fired = new Map(); // by the id of an element, which stays when the element is exchanged: when it was last asked for
const waiting = new Map(); // by id, the timer of what is still to be asked for

const hearsOf = (element, topics) => topics.includes(EVERYTHING) || element.dataset.live.split(' ').some((each) => topics.includes(each));
const inUse = (element) => (element.contains(document.activeElement) && element !== document.activeElement) || $(':popover-open, dialog[open], details[open] form', element);

function news(topics) {
  $$('[data-live][id]').filter((each) => hearsOf(each, topics)).forEach((each) => ask(each.id));
}

function ask(id) {
  if (waiting.has(id)) return;
  const element = document.getElementById(id);
  if (!element) return;
  const every = Number(element.dataset.liveEvery ?? 2) * 1000;
  const due = Math.max(0, (fired.get(id) ?? -every) + every - performance.now());
  waiting.set(id, setTimeout(() => { waiting.delete(id); fetchNow(id); }, due));
}

function fetchNow(id) {
  const element = document.getElementById(id);
  if (!element) return;
  if (!wanted()) { missed = true; return; }
  fired.set(id, performance.now());
  if (element === button) recount();
  else if ('liveList' in element.dataset) lookForRows(element);
  else if (inUse(element)) ask(id); // nothing is exchanged under the hands of who works with it
  else htmx.trigger(element, 'live');
}

async function recount() {
  const answer = await fetch(button.dataset.counts, { redirect: 'manual' });
  if (!answer.ok) return;
  const counts = await answer.json();
  $$('[data-count]').forEach((each) => {
    const n = counts[each.dataset.count] ?? 0;
    each.hidden = !n;
    $('[data-n]', each).textContent = n;
  });
}

// Lists.

// A row is known by the address that it leads to. Figures of a chart stand folded beside the list, and are no rows of it.
const readRows = (list) => new Map($$('tbody > tr, .tl > li', list).filter((row) => !row.closest('details')).map((row) => [$('a[href]', row)?.getAttribute('href'), row]));

async function lookForRows(list) {
  const answer = await fetch(location.href, { headers: { 'HX-Request': 'true', 'HX-Target': list.id }, redirect: 'manual' });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById(list.id);
  if (!fresh || !list.isConnected) return;
  const [before, after] = [readRows(list), readRows(fresh)];
  for (const [address, next] of after) {
    const row = before.get(address);
    if (row && row.innerHTML !== next.innerHTML && !inUse(row) && !$('input', row)) row.innerHTML = next.innerHTML;
  }
  const newer = [...after.keys()].filter((address) => !before.has(address)).length;
  const pill = $('#newer');
  pill.replaceChildren();
  if (!newer) return;
  const show = document.createElement('button');
  show.type = 'button';
  show.className = 'btn primary';
  show.textContent = sentence('newer').replace('{n}', newer === after.size && before.size ? `${newer}+` : newer);
  show.addEventListener('click', async () => {
    pill.replaceChildren();
    await htmx.ajax('GET', location.href, { target: `#${list.id}`, swap: 'outerHTML' });
    pill.replaceChildren(); // what was counted meanwhile is on the list
    const [first] = readRows(document.getElementById(list.id)).values();
    if (first) $('[data-row], a[href]', first)?.focus();
  });
  pill.append(show);
}

// The stream.

function lead() {
  missed ||= performance.now() - began > 1000; // another tab had the stream till now, and may have missed something at its end
  return new Promise((done) => {
    release = done;
    open();
  });
}

function open() {
  clearTimeout(timer);
  source?.close();
  source = new EventSource(button.dataset.events);
  source.onopen = () => {
    failures = 0;
    say('live');
    if (missed) spread([EVERYTHING]);
    missed = false;
  };
  source.onmessage = ({ data }) => spread(data.split(' '));
  source.onerror = () => {
    missed = true;
    if (source?.readyState === EventSource.CLOSED) poll();
    else say('reconnecting');
  };
}

function spread(topics) {
  news(topics);
  channel?.postMessage({ topics });
}

// Where no stream can be had, pages ask now and then; the longer it fails, the more seldom.
async function poll() {
  clearTimeout(timer);
  let answer;
  try {
    answer = await fetch(button.dataset.counts, { redirect: 'manual' });
  } catch {
    answer = { type: 'error', status: 0, ok: false };
  }
  if (!wanted()) return;
  if (answer.type === 'opaqueredirect' || answer.status === 401 || answer.status === 403) {
    over = true;
    say('off');
    stop();
    return;
  }
  failures = answer.ok ? 0 : failures + 1;
  say(answer.ok ? 'polling' : 'reconnecting');
  if (answer.ok) spread([EVERYTHING]);
  const delay = answer.ok ? POLL_DELAY : Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures);
  timer = setTimeout(source ? open : poll, delay * (0.75 + Math.random() / 2));
}

function start() {
  if (leaving || !wanted()) return;
  leaving = new AbortController();
  began = performance.now();
  show('connecting');
  // Locks are there in secure contexts only. Without them each tab would hold a connection, of which a browser has six.
  if (!navigator.locks) poll();
  else navigator.locks.request(NAME, { signal: leaving.signal }, lead).catch((error) => { if (error.name !== 'AbortError') throw error; });
  channel?.postMessage({ asks: true });
}

function stop() {
  clearTimeout(timer);
  source?.close();
  source = null;
  leaving?.abort();
  leaving = null;
  release?.();
  release = null;
}

function follow() { // what the person has just done: hid the tab, came back, paused or went on
  if (wanted()) {
    start();
    if (missed) news([EVERYTHING]);
    missed = false;
    return;
  }
  stop();
  missed = true;
  if (!over) show(paused() ? 'paused' : 'reconnecting');
}

// What a fragment asks for by itself every few seconds it does not ask for where nobody sees it.
on('htmx:beforeRequest', (event) => {
  const polls = event.target.getAttribute?.('hx-trigger')?.includes('every ');
  if (polls && !event.detail.requestConfig.triggeringEvent && (document.hidden || (button && paused()))) event.preventDefault();
});

// Nobody is led away from what they do by what a page asks for by itself: that one is signed out the stream says.
on('htmx:beforeOnLoad', (event) => {
  const { requestConfig, xhr } = event.detail;
  if (requestConfig.triggeringEvent?.type === 'live' && xhr.getResponseHeader('HX-Redirect')) event.preventDefault();
});

if (button) {
  channel?.addEventListener('message', ({ data }) => {
    if (data.asks && source) channel.postMessage({ state: button.dataset.state });
    if (!wanted() || source) return;
    if (data.state) show(data.state);
    if (data.topics) news(data.topics);
  });
  button.addEventListener('click', () => {
    if (over) return;
    localStorage.setItem(PAUSED, paused() ? '' : '1');
    follow();
  });
  window.addEventListener('storage', ({ key }) => { if (key === PAUSED) follow(); });
  document.addEventListener('visibilitychange', follow);
  window.addEventListener('pagehide', stop);
  window.addEventListener('pageshow', ({ persisted }) => { if (persisted) { missed = true; follow(); } });
  if (paused()) show('paused');
  else start();
}
