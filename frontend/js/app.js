// Everything here is an enhancement: every link and form works without it. So the page is painted first, and its scripts run then; run as
// they came, they kept it from being painted.
import './zones.js'; // what it adds to a page is there when that is painted
import './reveal.js'; // a value hides again, and a passkey is asked for, whatever else of the page is still on its way
import './passkeys.js';

const loaded = new Promise((done) => {
  if (document.readyState === 'complete') done();
  else window.addEventListener('load', done, { once: true });
});

const painted = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, document.hidden ? 0 : 500); // what nobody sees draws no frame
});

loaded.then(painted).then(() => import('./page.js')).then(() => {
  // Tests wait for this, never for an idle network: on a slow machine the network is idle before scripts have run.
  document.documentElement.dataset.ready = '';
});
