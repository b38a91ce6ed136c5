// Charts: the key shows the figures of the column under the pointer; dragging over columns opens the list of that time.
// Geometry goes through SVG attributes: the CSP forbids styles. Without this module each part is a link, and has its figure as a title.
import { $, $$, on } from './dom.js';

let drag; // { chart, from, to, moved }

const columnAt = (event) => event.target.closest?.('.sc-col');
const chartOf = (element) => element.closest('[data-chart]');

function read(chart, column) {
  $('[data-when]', chart).textContent = column ? column.dataset.at : '';
  $$('b[data-series]', chart).forEach((figure) => {
    const part = column && $(`.sc-part[data-series="${figure.dataset.series}"]`, column);
    figure.textContent = column ? part?.dataset.n ?? '0' : figure.dataset.total;
  });
}

function paint({ chart, from, to }) {
  const columns = $$('.sc-col', chart);
  const [first, last] = [columns.indexOf(from), columns.indexOf(to)].sort((a, b) => a - b);
  const [begin, end] = [$('.sc-hit', columns[first]), $('.sc-hit', columns[last])].map((hit) => [parseFloat(hit.getAttribute('x')), parseFloat(hit.getAttribute('width'))]);
  const brush = $('[data-brushed]', chart);
  brush.setAttribute('x', `${begin[0]}%`);
  brush.setAttribute('width', `${end[0] + end[1] - begin[0]}%`);
  return [columns[first], columns[last]];
}

on('pointerover', (event) => { const column = columnAt(event); if (column) read(chartOf(column), column); });
on('pointerout', (event) => {
  const column = columnAt(event);
  if (column && !event.relatedTarget?.closest?.('.sc-col')) read(chartOf(column), null);
});

on('pointerdown', (event) => {
  const column = columnAt(event);
  if (!column || event.button || event.pointerType === 'touch' || !chartOf(column).dataset.brush) return;
  drag = { chart: chartOf(column), from: column, to: column, moved: false };
});
on('dragstart', (event) => { if (columnAt(event)) event.preventDefault(); }); // of the link itself
on('pointermove', (event) => {
  const column = drag && columnAt(event);
  if (!column || chartOf(column) !== drag.chart || column === drag.to) return;
  Object.assign(drag, { to: column, moved: true });
  paint(drag);
});
on('pointerup', () => {
  const done = drag;
  drag = undefined;
  if (!done?.moved) return;
  const [first, last] = paint(done);
  const to = new URL(done.chart.dataset.brush, location.href);
  to.searchParams.set('from', first.dataset.begin);
  to.searchParams.set('to', last.dataset.end);
  location.assign(to);
});
