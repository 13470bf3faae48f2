// Server-sent events out of text that comes in pieces, cut anywhere.

export type SseItem = {kind: 'event'; event: string; data: string} | {kind: 'comment'; text: string};

export class SseParser {
  private rest = '';
  private event = '';
  private data: string[] = [];
  private isStart = true;

  // What this piece completed. Lines end with \n, \r\n or \r; an event ends with an empty line.
  push(piece: string): SseItem[] {
    const items: SseItem[] = [];
    this.rest += piece;
    if (this.isStart && this.rest.length > 0) {
      if (this.rest.startsWith('\uFEFF')) this.rest = this.rest.slice(1);
      this.isStart = false;
    }
    let begin = 0;
    for (let at = 0; at < this.rest.length; ++at) {
      const code = this.rest.charCodeAt(at);
      if (code !== 10 && code !== 13) continue;
      // A \r that ends the piece may be half of \r\n: what follows it decides.
      if (code === 13 && at + 1 === this.rest.length) break;
      const line = this.rest.slice(begin, at);
      if (code === 13 && this.rest.charCodeAt(at + 1) === 10) ++at;
      begin = at + 1;
      const item = this.line(line);
      if (item) items.push(item);
    }
    this.rest = this.rest.slice(begin);
    return items;
  }

  private line(line: string): SseItem | undefined {
    if (line === '') return this.dispatch();
    if (line.startsWith(':')) return {kind: 'comment', text: line.slice(1).trimStart()};
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1));
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.event = value;
    return undefined;
  }

  private dispatch(): SseItem | undefined {
    const item: SseItem = {kind: 'event', event: this.event || 'message', data: this.data.join('\n')};
    const isEmpty = this.data.length === 0;
    this.event = '';
    this.data = [];
    return isEmpty ? undefined : item;
  }
}
