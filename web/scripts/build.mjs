// Bundles src/ into a folder (web/dist unless told) and packs each file beside itself with gzip. The same sources give
// the same bytes: no times, no hashes of paths.
//
//   node scripts/build.mjs [FOLDER]
import {build} from 'esbuild';
import {copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const out = path.resolve(process.argv[2] ?? path.join(root, 'dist'));

// Browsers of the last two years or so: light-dark() in the styles is their newest feature.
const target = ['chrome123', 'firefox120', 'safari17.5'];

rmSync(out, {recursive: true, force: true});
mkdirSync(out, {recursive: true});
await build({
  absWorkingDir: root,
  entryPoints: {page: 'src/main.tsx', theme: 'src/theme.ts'},
  outdir: out,
  bundle: true,
  minify: true,
  format: 'iife',
  target,
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
});
await build({
  absWorkingDir: root,
  entryPoints: {page: 'src/styles/page.css'},
  outdir: out,
  bundle: true,
  minify: true,
  target,
  logLevel: 'warning',
});
for (const name of ['index.html', 'icon.svg']) copyFileSync(path.join(root, 'src', name), path.join(out, name));

let total = 0;
for (const name of readdirSync(out).sort()) {
  const packed = gzipSync(readFileSync(path.join(out, name)), {level: 9});
  packed[9] = 255;  // the system that packed it: unknown, so that all make the same bytes
  writeFileSync(path.join(out, `${name}.gz`), packed);
  total += packed.length;
}
console.log(`page: ${path.relative(process.cwd(), out) || '.'}, ${(total / 1000).toFixed(1)} kB compressed`);
