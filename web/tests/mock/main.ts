// npm run mock [PORT]: the page over made-up data, with one run that trains on.
import path from 'node:path';

import {MockServer} from './server';

const mock = new MockServer(path.resolve('dist'));
const address = await mock.start(Number(process.argv[2] ?? 8090));
setInterval(() => mock.train('island/words', 10), 1000);
console.log(`mock: ${address}`);
