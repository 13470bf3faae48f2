// Makes JavaScript of the tests below web/tests: node runs no TypeScript in the versions that Debian has.
import {build} from 'esbuild';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

// Bundles these files into web/build and returns where they went.
export async function bundle(files) {
  const outdir = path.join(root, 'build');
  await build({
    absWorkingDir: root,
    entryPoints: files,
    outdir,
    outbase: root,
    outExtension: {'.js': '.mjs'},
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node18',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    sourcemap: 'inline',
    logLevel: 'warning',
  });
  return files.map((file) => path.join(outdir, path.relative(root, file).replace(/\.tsx?$/, '.mjs')));
}
