// Requests to the server that sent this page. Addresses are relative, so it also works behind a prefix.
import {signal} from '@preact/signals';

import {ApiError, errorOf, isAbort} from './error';
import {SseParser, type SseItem} from './sse';

const tokenKey = 'routing.token';
// True while the server wants a token that it was not given (api/../ui/token_dialog.tsx asks for it).
export const wantsToken = signal(false);

function keptToken(): string | null {
  try {
    return sessionStorage.getItem(tokenKey);
  } catch {
    return null;
  }
}
let token: string | null = keptToken();

export function setToken(value: string): void {
  token = value;
  wantsToken.value = false;
  try {
    sessionStorage.setItem(tokenKey, value);
  } catch {
    // Then it has to be given again after a reload.
  }
}

export interface RequestOptions {
  body?: unknown;
  signal?: AbortSignal;
}

// The answer's headers and the start of its body; throws an ApiError for everything that is no success.
async function request(path: string, options: RequestOptions, accept: string): Promise<Response> {
  const headers: Record<string, string> = {Accept: accept};
  if (token !== null) headers['Authorization'] = `Bearer ${token}`;
  const init: RequestInit = {headers, cache: 'no-store'};
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    init.method = 'POST';
    init.body = JSON.stringify(options.body);
    headers['Content-Type'] = 'application/json';
  }
  const given = token;
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError('the server does not answer', 0);
  }
  if (answer.ok) return answer;
  if (answer.status === 401) {
    // It was asked before the reader gave the token.
    if (given !== token) return request(path, options, accept);
    wantsToken.value = true;
  }
  throw errorOf(answer.status, await answer.text().catch(() => ''), answer.headers.get('Retry-After'));
}

async function wholeBody<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError('the answer broke off', 0);
  }
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await request(path, signal ? {signal} : {}, 'application/json');
  return wholeBody(() => answer.json() as Promise<T>);
}

export async function postJson<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await request(path, signal ? {body, signal} : {body}, 'application/json');
  return wholeBody(() => answer.json() as Promise<T>);
}

export async function getBlob(path: string, signal?: AbortSignal): Promise<Blob> {
  const answer = await request(path, signal ? {signal} : {}, '*/*');
  return wholeBody(() => answer.blob());
}

// Events as they come. Ends where the stream ends; throws an ApiError where the connection breaks.
export async function* streamEvents(path: string, options: RequestOptions): AsyncGenerator<SseItem> {
  const answer = await request(path, options, 'text/event-stream');
  if (!answer.body) return;
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      const {done, value} = await wholeBody(() => reader.read());
      if (done) return;
      yield* parser.push(decoder.decode(value, {stream: true}));
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

// Names of runs may have parts: exp/a.
export function pathOfRun(id: string): string {
  return id.split('/').map(encodeURIComponent).join('/');
}
