// The clusters of a routed head: how many tokens each has, and the way from member to member.
import {groupColour, palette} from '../../draw/colours';
import {Segments} from '../../ui/controls';
import {plural, whole} from '../../ui/format';
import {themeChanges} from '../../ui/theme';
import {neighbours, sizesOf} from './head_facts';

const choices = [
  {value: 'all', name: 'All'}, {value: 'own', name: "This token's"}, {value: 'one', name: 'One'},
] as const;

export function ClusterPanel(props: {
  of: readonly number[][]; count: number; token: number; only: number | undefined; showsAll: boolean;
  onAll: (showsAll: boolean) => void; onOnly: (cluster: number | undefined) => void; onGo: (token: number) => void;
}) {
  void themeChanges.value;
  const colours = palette();
  const {of, token, only} = props;
  const own = of[token] ?? [];
  const followed = only ?? own[0];
  const {previous, next} = followed === undefined ? {previous: undefined, next: undefined} : neighbours(of, followed, token);
  const sizes = sizesOf(of, props.count);
  const unrouted = of.filter((each) => each.length === 0).length;
  return (
    <section class="clusters" aria-label="Clusters">
      <Segments label="Coloured" choices={choices} value={only !== undefined ? 'one' : props.showsAll ? 'all' : 'own'}
                onChange={(value) => value === 'one' ? props.onOnly(followed) : props.onAll(value === 'all')} />
      <div class="toolbar">
        <button type="button" disabled={previous === undefined} onClick={() => previous !== undefined && props.onGo(previous)}>
          <kbd>[</kbd> Previous
        </button>
        <button type="button" disabled={next === undefined} onClick={() => next !== undefined && props.onGo(next)}>
          Next <kbd>]</kbd>
        </button>
        <span class="label">
          {followed === undefined ? 'this token is in no cluster' :
            `member of cluster ${followed}${own.length > 1 && only === undefined ? ` and ${own.length - 1} more` : ''}`}
        </span>
      </div>
      <ul class="cluster-list" aria-label="Clusters by size; choose one to see only its members">
        {sizes.map(({cluster, members}) => (
          <li key={cluster}>
            <button type="button" class="chip" aria-pressed={only === cluster} data-own={own.includes(cluster) ? '' : undefined}
                    onClick={() => props.onOnly(only === cluster ? undefined : cluster)}>
              <span class="swatch" style={{color: groupColour(cluster, colours)}} />
              <span>{cluster}</span><span class="soft">{whole(members)}</span>
            </button>
          </li>
        ))}
      </ul>
      {unrouted > 0 ? <p class="soft small">{plural(unrouted, 'token')} in no cluster.</p> : null}
    </section>
  );
}
