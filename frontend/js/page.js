// What a page does beyond its links and forms. Its modules are run once the page has been painted: js/app.js.
import htmx from 'htmx.org/dist/htmx.esm.js';
import './shell.js';
import './rows.js';
import './keys.js';
import './charts.js';
import './live.js';

window.htmx = htmx;
