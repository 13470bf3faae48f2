// What went wrong with a request, and what the reader can do about it.

export class ApiError extends Error {
  constructor(
      message: string,
      // 0: no answer came at all.
      readonly status: number,
      readonly param: string | null = null,
      readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

interface ErrorBody { error?: {message?: unknown; param?: unknown} }

// The error of an answer whose status is not good. Bodies that are not ours, of a proxy for example, keep their status.
export function errorOf(status: number, body: string, retryAfter: string | null): ApiError {
  const seconds = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
  try {
    const {error} = JSON.parse(body) as ErrorBody;
    if (typeof error?.message === 'string') {
      return new ApiError(error.message, status, typeof error.param === 'string' ? error.param : null, seconds);
    }
  } catch {
    // Not JSON: the sentence below.
  }
  return new ApiError(`the server answered with status ${status}`, status, null, seconds);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

// What a person can do about it; empty where the message says all.
export function advice(error: unknown): string {
  if (!(error instanceof ApiError)) return 'This is a mistake of the page. Reloading it may help.';
  switch (error.status) {
    case 0: return 'Is routing serve still running? Start it again with the same folder; the page then goes on.';
    case 401: return 'Give the token that the server was started with.';
    case 403: return 'Open the page under the address that routing serve printed.';
    case 404: return 'The run may have been moved or deleted. Choose another one.';
    case 408: return 'The connection was too slow. Try again.';
    case 413: return 'Take a shorter text: a request holds at most 8 MiB.';
    case 429: {
      const when = error.retryAfter === null ? 'in a moment' : `in ${error.retryAfter} s`;
      return `The queue is full. Try again ${when}.`;
    }
    case 503: return 'Try again when the server has the model, or choose another one.';
    default: return error.status >= 500 ? 'The terminal in which routing serve runs says more.' : '';
  }
}

export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.charAt(0).toUpperCase() + text.slice(1);
}
