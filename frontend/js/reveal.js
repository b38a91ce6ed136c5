// A revealed value hides again: <div data-hide-after="60" data-hidden="Hidden again.">. Going back must not show it either.
import { $$, on } from './dom.js';

function hide(box) {
  box.textContent = box.dataset.hidden;
  box.removeAttribute('data-hide-after');
}

function arm() {
  $$('[data-hide-after]').forEach((box) => {
    if (box.dataset.armed) return;
    box.dataset.armed = '1';
    setTimeout(() => hide(box), Number(box.dataset.hideAfter) * 1000);
  });
}

arm();
on('htmx:afterSwap', arm);
window.addEventListener('pagehide', () => $$('[data-hide-after]').forEach(hide));
