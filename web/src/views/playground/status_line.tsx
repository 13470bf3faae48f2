// How fast it goes and what it used.
import type {Usage} from '../../api/types';
import {digits, duration, plural, whole} from '../../ui/format';
import type {Activity, Speed} from './generation';

const reasons: Record<string, string> = {
  length: 'reached the number of new tokens', stop: 'ended by itself or at a stop text',
};

export function finishText(finish: string | null): string {
  return finish === null ? '' : reasons[finish] ?? finish;
}

const rate = (perSecond: number) => perSecond >= 1000 ? whole(perSecond) : digits(perSecond, 3);

export function StatusLine(props: {
  activity: Activity; speed: Speed | undefined; usage: Usage | undefined; finish: string | null;
}) {
  const {activity, speed, usage} = props;
  if (activity.kind === 'waiting') {
    return <p class="status soft">{activity.progress ? `Prompt: ${activity.progress} tokens` : 'Waiting for the first token'}</p>;
  }
  if (!speed) return <p class="status soft" />;
  const parts: string[] = [];
  if (speed.tokens > 1 && speed.seconds > 0) parts.push(`${rate((speed.tokens - 1) / speed.seconds)} tokens/s`);
  if (speed.first !== null) parts.push(`first after ${duration(speed.first)}`);
  if (usage) {
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    parts.push(`${plural(usage.prompt_tokens, 'token')} read${cached > 0 ? `, ${cached} of them remembered` : ''}`);
    parts.push(`${plural(usage.completion_tokens, 'token')} drawn`);
  }
  if (activity.kind === 'idle' && props.finish) parts.push(finishText(props.finish));
  return <p class="status soft">{parts.join(' · ')}</p>;
}
