// Whether what is shown is live.
import {messageOf} from '../../api/error';
import {connection} from './run_data';

export function Connection() {
  const state = connection.value;
  if (state.kind === 'live') return <span class="label live"><span class="dot" />live</span>;
  if (state.kind === 'connecting') return <span class="label">connecting</span>;
  return <span class="label bad" role="status">{messageOf(state.error)}; trying again in {state.seconds} s</span>;
}
