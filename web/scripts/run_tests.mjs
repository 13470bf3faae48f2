// Runs web/tests/unit or web/tests/browser with node's own runner: node scripts/run_tests.mjs unit [FILE…]
import {spawnSync} from 'node:child_process';
import {readdirSync} from 'node:fs';
import path from 'node:path';
import {bundle, root} from './bundle_tests.mjs';

const [part, ...only] = process.argv.slice(2);
const folder = path.join(root, 'tests', part);
const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts'))
                  .filter((name) => only.length === 0 || only.some((each) => name.includes(each)))
                  .map((name) => path.join(folder, name));
if (files.length === 0) {
  console.error(`run_tests: no test in tests/${part} is named like ${only.join(', ')}`);
  process.exit(1);
}
const bundled = await bundle(files);
const result = spawnSync(process.execPath, ['--enable-source-maps', '--test', ...bundled], {cwd: root, stdio: 'inherit'});
process.exit(result.status ?? 1);
