// A server that answers as docs/server.md says, from made-up data, and fails on demand as the real one never should.
import {createServer, type IncomingMessage, type Server, type ServerResponse} from 'node:http';
import {readFileSync} from 'node:fs';
import type {AddressInfo} from 'node:net';
import path from 'node:path';

import {attentionOf, clustersOf} from './attention';
import {drawTokens, logprobsOf, pictureRow} from './completions';
import {idsOf, layersOf, models, piecesOf, type MockModel} from './models';
import {patternList, patternRows} from './patterns';
import {pngOf} from './png';
import {clusterHistoryOf, linesOf, runs as usualRuns, samplesOf, summaryOf, type MockRun} from './runs';

// What a test asks for: the answer to the next `times` requests for a path.
export interface Failure { path: string; status: number; message?: string; times?: number; retryAfter?: number; drop?: boolean }

export class MockServer {
  // Of its own: a run that trains on here stays as it was for the next test.
  runs: MockRun[] = usualRuns.map((run) => ({...run}));
  models: MockModel[] = [...models];
  failures: Failure[] = [];
  requests: {path: string; body: Record<string, unknown>; token: string | undefined}[] = [];
  aborted = 0;
  token: string | undefined;
  millisecondsPerToken = 4;
  // Milliseconds before an answer.
  delay = (): number => 0;
  breakStreamAfter = Infinity;
  // Until letGo(), a stream stands still when it has sent so many tokens or rows, and answers below a path do not come. A
  // test that looks at something on its way holds it there, however fast or slow the machine is.
  holdStreamsAt = Infinity;
  holdAnswersOf: string | undefined;

  private readonly streams = new Set<{response: ServerResponse; run: string | null; next: number}>();
  private readonly server: Server;
  private held: (() => void)[] = [];

  constructor(private readonly dist: string) {
    this.server = createServer((request, response) => {
      this.answer(request, response).catch((error: unknown) => {
        if (!response.headersSent) this.refuse(response, 500, String(error));
        response.end();
      });
    });
  }

  async start(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(port, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    for (const {response} of this.streams) response.destroy();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  // Connections break, as when the process is killed.
  dropStreams(): void {
    for (const {response} of this.streams) response.destroy();
    this.streams.clear();
  }

  letGo(): void {
    this.holdStreamsAt = Infinity;
    this.holdAnswersOf = undefined;
    for (const goOn of this.held.splice(0)) goOn();
  }

  // Whether a page has asked to be told about this run.
  isFollowed(id: string): boolean {
    return [...this.streams].some((stream) => stream.run === id);
  }

  // A run trains on, and whoever watches is told.
  train(id: string, steps: number): void {
    const found = this.runs.find((each) => each.id === id);
    if (!found) throw new Error(`no run ${id}`);
    const before = {step: found.done};
    found.done += steps;
    const lines = linesOf(found);
    for (const stream of this.streams) {
      send(stream.response, 'runs', this.runList());
      if (stream.run !== id) continue;
      send(stream.response, 'metrics', {id, from: stream.next, next: lines.length, lines: lines.slice(stream.next)});
      stream.next = lines.length;
      send(stream.response, 'clusters', {id, ...clusterHistoryOf(found, before.step)});
    }
  }

  runList() {
    return {runs: this.runs.map(summaryOf)};
  }

  private refuse(response: ServerResponse, status: number, message: string, headers: Record<string, string> = {}): void {
    response.writeHead(status, {'Content-Type': 'application/json', ...headers});
    response.end(JSON.stringify({error: {message, type: 'invalid_request_error', param: null, code: null}}));
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://mock');
    const where = decodeURIComponent(url.pathname);
    const body = request.method === 'POST' ? JSON.parse(await bodyOf(request)) as Record<string, unknown> : {};
    if (!this.sendsFile(where, response)) {
      const token = request.headers.authorization?.replace(/^Bearer /, '');
      this.requests.push({path: where, body, token});
      if (this.holdAnswersOf !== undefined && where.startsWith(this.holdAnswersOf)) await this.standStill();
      await wait(this.delay());
      const failure = this.failures.find((each) => where.startsWith(each.path));
      if (failure) return this.fail(failure, response);
      if (this.token !== undefined && token !== this.token) {
        return this.refuse(response, 401, 'the token is missing or wrong');
      }
      await this.route(where, url, body, response);
    }
  }

  private standStill(): Promise<void> {
    return new Promise((resolve) => this.held.push(resolve));
  }

  // Between two pieces of a stream.
  private async pause(sent: number, milliseconds: number): Promise<void> {
    if (sent >= this.holdStreamsAt) await this.standStill();
    await wait(milliseconds);
  }

  private fail(failure: Failure, response: ServerResponse): void {
    failure.times = (failure.times ?? Infinity) - 1;
    if (failure.times <= 0) this.failures = this.failures.filter((each) => each !== failure);
    if (failure.drop) {
      response.destroy();
      return;
    }
    const headers: Record<string, string> = failure.retryAfter ? {'Retry-After': String(failure.retryAfter)} : {};
    this.refuse(response, failure.status, failure.message ?? 'made up to fail', headers);
  }

  // The page as the program sends it, with the same policy.
  private sendsFile(where: string, response: ServerResponse): boolean {
    const name = where === '/' ? 'index.html' : where.slice(1);
    const types: Record<string, string> = {html: 'text/html; charset=utf-8', js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml'};
    const type = types[name.split('.').pop() ?? ''];
    if (!type || name.includes('/')) return false;
    response.writeHead(200, {'Content-Type': type, 'Content-Encoding': 'gzip', 'Content-Security-Policy': "default-src 'self'",
                             'Cache-Control': 'no-cache'});
    response.end(readFileSync(path.join(this.dist, `${name}.gz`)));
    return true;
  }

  private async route(where: string, url: URL, body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const json = (value: unknown) => {
      response.writeHead(200, {'Content-Type': 'application/json'});
      response.end(JSON.stringify(value));
    };
    const run = /^\/api\/runs\/(.+)\/(config|metrics|clusters|samples)(?:\/([^/]+))?$/.exec(where);
    if (where === '/v1/models') return json({object: 'list', data: this.models});
    if (where === '/api/patterns') return json(body['pattern'] ? patternRows(body as never) : {patterns: patternList});
    if (where === '/api/runs') return json(this.runList());
    if (where === '/api/events') return this.openEvents(url, response);
    if (run) return this.runFile(run[1]!, run[2]!, run[3], url, response, json);
    const model = this.models.find((each) => each.id === body['model']);
    if (!model) return this.refuse(response, 404, `there is no run '${String(body['model'])}' at ${where}`);
    if (where === '/v1/completions') return this.complete(model, body, response);
    if (where === '/v1/images/completions') return this.draw(model, body, response);
    const pieces = piecesOf(model, String(body['text'] ?? ''));
    if (where === '/api/tokens') return json({ids: idsOf(model, pieces), pieces, layers: layersOf(model)});
    const [layer, head] = [body['layer'] as number | undefined, body['head'] as number | undefined];
    if (where === '/api/clusters') {
      const count = layersOf(model)[layer ?? 0]?.heads[head ?? 0]?.clusters ?? 0;
      if (count === 0) return this.refuse(response, 400, `head ${head} of layer ${layer} has no clusters`);
      return json({clusters: clustersOf(pieces, layer!, head!, count)});
    }
    if (where === '/api/attention') {
      return json(attentionOf({model, pieces, position: Number(body['position']),
                               ...(layer === undefined ? {} : {layer}), ...(head === undefined ? {} : {head})}));
    }
    this.refuse(response, 404, `there is no ${where}`);
  }

  private runFile(id: string, what: string, file: string | undefined, url: URL, response: ServerResponse,
                  json: (value: unknown) => void): void {
    const found = this.runs.find((each) => each.id === id);
    if (!found) return this.refuse(response, 404, `there is no run '${id}'`);
    const after = Number(url.searchParams.get('after') ?? 0);
    if (what === 'config') return json({keys: {'train.steps': String(found.steps), 'routing.dead_share': '0.1'}});
    if (what === 'clusters') return json(clusterHistoryOf(found, after));
    if (what === 'metrics') {
      const lines = linesOf(found);
      return json({from: after, next: lines.length, lines: lines.slice(after)});
    }
    if (file === undefined) return json({samples: samplesOf(found)});
    const seed = parseInt(file.replace(/\D/g, ''), 10);
    response.writeHead(200, {'Content-Type': 'image/png'});
    response.end(pngOf(96, 32, (row) => [0, 1, 2].flatMap((index) => pictureRow(seed, index, row, 32, 32))));
  }

  private openEvents(url: URL, response: ServerResponse): void {
    response.writeHead(200, {'Content-Type': 'text/event-stream'});
    const stream = {response, run: url.searchParams.get('run'), next: Number(url.searchParams.get('after') ?? 0)};
    this.streams.add(stream);
    response.on('close', () => this.streams.delete(stream));
    send(response, 'runs', this.runList());
  }

  private async complete(model: MockModel, body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    if (model.problem) return this.refuse(response, 503, model.problem);
    response.writeHead(200, {'Content-Type': 'text/event-stream'});
    let gone = false;
    response.on('close', () => {
      if (!response.writableFinished) ++this.aborted;
      gone = true;
    });
    const [count, most, seed] = [Number(body['n'] ?? 1), Number(body['max_tokens'] ?? 256), Number(body['seed'] ?? 1)];
    const prompt = String(body['prompt']);
    const read = piecesOf(model, prompt).length;
    for (let at = 512; at < read; at += 512) {
      response.write(`: reading ${at} of ${read}\n\n`);
      await this.pause(0, this.millisecondsPerToken * 10);
    }
    await this.pause(0, 0);
    const draws = Array.from({length: count}, (_, index) => drawTokens(model, prompt, seed + 1000 * index));
    let drawn = 0;
    for (let step = 0; step < most && !gone; step += 0) {
      let width = 1;
      for (let index = 0; index < count; ++index) {
        const next = draws[index]!.next().value!;
        width = next.tokens.length;
        drawn += width;
        send(response, undefined, {object: 'text_completion', validity: model.validity, choices: [
               {index, text: next.text, logprobs: logprobsOf(next), finish_reason: null}]});
      }
      step += width;
      await this.pause(step, this.millisecondsPerToken);
      if (drawn > this.breakStreamAfter) return void response.destroy();
    }
    for (let index = 0; index < count; ++index) {
      send(response, undefined, {choices: [{index, text: '', logprobs: null, finish_reason: 'length'}]});
    }
    send(response, undefined, {choices: [], usage: {prompt_tokens: read, completion_tokens: drawn, total_tokens: read + drawn,
                                                     prompt_tokens_details: {cached_tokens: Math.floor(read / 2)}}});
    response.end('data: [DONE]\n\n');
  }

  private async draw(model: MockModel, body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const [width, height] = [model.width ?? 32, model.height ?? 32];
    const count = Number(body['n'] ?? 1);
    const first = body['image'] ? Number(body['rows'] ?? height / 2) : 0;
    response.writeHead(200, {'Content-Type': 'text/event-stream'});
    await this.pause(0, 0);
    const rowOf = (index: number, row: number) => pictureRow(Number(body['seed'] ?? 1), index, row, width, height);
    for (let row = first; row < height; ++row) {
      for (let index = 0; index < count; ++index) send(response, undefined, {index, row, values: rowOf(index, row)});
      await this.pause(row + 1, this.millisecondsPerToken * 4);
    }
    const data = Array.from({length: count}, (_, index) => ({
      index, b64_json: pngOf(width, height, (row) => rowOf(index, row)).toString('base64'), nats: 2.4 * width * (height - first) * 3}));
    send(response, undefined, {created: 0, model: model.id, validity: model.validity, width, height, data});
    response.end('data: [DONE]\n\n');
  }
}

function send(response: ServerResponse, event: string | undefined, data: unknown): void {
  response.write(`${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
}

async function wait(milliseconds: number): Promise<void> {
  if (milliseconds > 0) await new Promise((resolve) => setTimeout(resolve, milliseconds));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}
