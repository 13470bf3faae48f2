// What stands around every view: the way to the others, and the theme.
import {useEffect} from 'preact/hooks';

import {announced} from './announce';
import {Segments} from './controls';
import {hashOf, lastPlaceOf, place, viewNames, type ViewName} from './place';
import {setTheme, theme, type Theme} from './theme';
import {TokenDialog} from './token_dialog';

const names: Record<ViewName, string> = {
  playground: 'Playground', attention: 'Attention', training: 'Training', patterns: 'Patterns',
};
const themes = [
  {value: 'light', name: 'Light'}, {value: 'system', name: 'Auto'}, {value: 'dark', name: 'Dark'},
] as const satisfies readonly {value: Theme; name: string}[];

function Mark() {
  const squares = ['M0 0h4v4H0zM0 8h4v4H0zM8 8h4v4H8z', 'M4 4h4v4H4z', 'M12 12h4v4h-4zM4 12h4v4H4z'];
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      {squares.map((shape, index) => <path key={index} d={shape} fill={`var(--hue-${index})`} />)}
    </svg>
  );
}

export function Shell(props: {views: Record<ViewName, () => preact.JSX.Element>}) {
  const {view} = place.value;
  const View = props.views[view];
  useEffect(() => {
    document.title = `${names[view]} · routing`;
  }, [view]);
  const skip = (event: Event) => {
    event.preventDefault();
    document.getElementById('main')?.focus();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <header class="bar">
        <span class="brand"><Mark />routing</span>
        <nav class="views" aria-label="Views">
          {viewNames.map((name) => (
            <a key={name} href={hashOf(lastPlaceOf(name))} aria-current={name === view ? 'page' : undefined}>
              {names[name]}
            </a>
          ))}
        </nav>
        <div class="tools">
          <Segments label="Theme" choices={themes} value={theme.value} onChange={setTheme} />
        </div>
      </header>
      <main id="main" tabIndex={-1} class={`view-${view}`} aria-label={names[view]}><View /></main>
      <div class="hidden-text" role="status" aria-live="polite">{announced.value}</div>
      <TokenDialog />
    </>
  );
}
