// How do the console's assets come from their sources? Writes static/ui from frontend/ and the locked npm packages.
// `node build.mjs` builds; `node build.mjs --check` builds elsewhere and says what differs from the committed files.
import { build } from 'esbuild';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = path.dirname(fileURLToPath(import.meta.url));
const modules = path.join(here, 'node_modules');
const committed = path.join(here, '..', 'static', 'ui');
const BUDGET_KB = { 'app.css': 16, 'app.js': 30 }; // gzipped
const FONTS = { geist: 'geist-latin-wght-normal.woff2', 'geist-mono': 'geist-mono-latin-wght-normal.woff2' };

function sprite() {
  const names = fs.readFileSync(path.join(here, 'icons.txt'), 'utf8').split(/\s+/).filter(Boolean);
  const symbols = names.map((name) => {
    const source = fs.readFileSync(path.join(modules, 'lucide-static', 'icons', `${name}.svg`), 'utf8');
    const shapes = source.replace(/<!--[\s\S]*?-->/g, '').replace(/^[\s\S]*?<svg[\s\S]*?>/, '').replace('</svg>', '');
    const body = shapes.replace(/\s+/g, ' ').replace(/> </g, '><').trim();
    return `<symbol id="${name}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round">${body}</symbol>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg">${symbols.join('')}</svg>\n`;
}

async function buildInto(out) {
  fs.mkdirSync(path.join(out, 'fonts'), { recursive: true });
  for (const [family, file] of Object.entries(FONTS))
    fs.copyFileSync(path.join(modules, '@fontsource-variable', family, 'files', file), path.join(out, 'fonts', file));
  fs.writeFileSync(path.join(out, 'icons.svg'), sprite());
  fs.copyFileSync(path.join(here, 'favicon.svg'), path.join(out, 'favicon.svg'));
  const common = { bundle: true, minify: true, target: ['chrome123', 'firefox125', 'safari17.5'], legalComments: 'none', nodePaths: [modules], logLevel: 'warning' };
  await build({ ...common, entryPoints: [path.join(here, 'css', 'app.css')], outfile: path.join(out, 'app.css'), external: ['*.woff2'] });
  await build({ ...common, entryPoints: [path.join(here, 'js', 'app.js')], outfile: path.join(out, 'app.js'), format: 'iife' });
}

const files = (dir) => (fs.existsSync(dir) ? fs.readdirSync(dir, { recursive: true, withFileTypes: true }) : [])
  .filter((entry) => entry.isFile()).map((entry) => path.relative(dir, path.join(entry.parentPath ?? entry.path, entry.name))).sort();

function overBudget(out) {
  return Object.entries(BUDGET_KB).flatMap(([name, limit]) => {
    const size = gzipSync(fs.readFileSync(path.join(out, name))).length / 1024;
    console.log(`${name}: ${size.toFixed(1)} kB gzipped of ${limit}`);
    return size > limit ? [`${name} is over its budget of ${limit} kB`] : [];
  });
}

let complaints;
if (process.argv.includes('--check')) {
  const fresh = fs.mkdtempSync(path.join(os.tmpdir(), 'toolhub-ui-'));
  try {
    await buildInto(fresh);
    const names = [...new Set([...files(fresh), ...files(committed)])];
    const read = (dir, name) => (fs.existsSync(path.join(dir, name)) ? fs.readFileSync(path.join(dir, name)) : null);
    const same = (name) => { const [a, b] = [read(fresh, name), read(committed, name)]; return a && b && a.equals(b); };
    complaints = names.filter((name) => !same(name)).map((name) => `static/ui/${name} differs from its source`);
    complaints.push(...overBudget(fresh));
    if (complaints.length) complaints.push('Run `npm run build` in frontend/ and commit static/ui.');
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true });
  }
} else {
  fs.rmSync(committed, { recursive: true, force: true });
  await buildInto(committed);
  complaints = overBudget(committed);
}
for (const complaint of complaints) console.error(complaint);
process.exit(complaints.length ? 1 : 0);
