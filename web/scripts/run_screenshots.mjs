import {spawn} from 'node:child_process';
import path from 'node:path';
import {bundle, root} from './bundle_tests.mjs';

const [file] = await bundle([path.join(root, 'tests/browser/pictures.ts')]);
const child = spawn(process.execPath, [file, ...process.argv.slice(2)], {cwd: root, stdio: 'inherit'});
child.on('exit', (code) => process.exit(code ?? 1));
process.on('SIGINT', () => child.kill());
process.on('SIGTERM', () => child.kill());
