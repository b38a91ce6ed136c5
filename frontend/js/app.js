// Everything here is an enhancement: every link and form works without it.
import htmx from 'htmx.org/dist/htmx.esm.js';
import './shell.js';
import './rows.js';
import './keys.js';
import './reveal.js';
import './passkeys.js';
import './charts.js';
import './live.js';
import './zones.js';

window.htmx = htmx;
// Tests wait for this, never for an idle network: on a slow machine the network is idle before scripts have run.
document.addEventListener('DOMContentLoaded', () => { document.documentElement.dataset.ready = ''; });
