// A text whose tokens can be looked at, with the mouse, a finger or the arrow keys.
import {useLayoutEffect, useRef} from 'preact/hooks';

import {hasModifier} from '../../ui/roving';
import {TokenSurface} from './token_surface';
import type {Unit} from './units';

export interface Looked { unit: Unit; index: number; isPinned: boolean }

export function TokenText(props: {
  units: readonly Unit[]; label: string; looked: Looked | undefined;
  onLook: (looked: Looked | undefined) => void; onEdit?: (index: number) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const surface = useRef<TokenSurface | undefined>(undefined);
  const {units, looked} = props;
  const active = looked && units[looked.index] === looked.unit ? looked.index : -1;

  useLayoutEffect(() => {
    if (!box.current) return;
    surface.current ??= new TokenSurface(box.current);
    surface.current.show(units);
  }, [units]);
  useLayoutEffect(() => surface.current?.activate(active), [active, units]);

  const look = (index: number, isPinned: boolean) => {
    const unit = units[index];
    if (unit) props.onLook({unit, index, isPinned});
  };
  const indexUnder = (event: Event): number => {
    const span = (event.target as Element).closest<HTMLElement>('[data-index]');
    return span ? Number(span.dataset['index']) : -1;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (hasModifier(event)) return;
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10}[event.key];
    if (event.key === 'Enter' && props.onEdit) {
      event.preventDefault();
      props.onEdit(active < 0 ? units.length - 1 : active);
    } else if (event.key === 'Home' || event.key === 'End' || step !== undefined) {
      event.preventDefault();
      const from = active < 0 ? units.length : active;
      const next = event.key === 'Home' ? 0 : event.key === 'End' ? units.length - 1 : from + (step ?? 0);
      const index = Math.max(0, Math.min(units.length - 1, next));
      look(index, true);
      surface.current?.element(index)?.scrollIntoView({block: 'nearest'});
    }
  };
  return (
    <div class="token-text" ref={box} tabIndex={0} role="group" aria-label={props.label}
         aria-describedby="token-keys" onKeyDown={onKeyDown}
         onMouseOver={(event) => {
           const index = indexUnder(event);
           if (index >= 0 && !looked?.isPinned) look(index, false);
         }}
         onMouseLeave={() => {
           if (!looked?.isPinned) props.onLook(undefined);
         }}
         onClick={(event) => {
           const index = indexUnder(event);
           if (index < 0 || (looked?.isPinned && index === active)) props.onLook(undefined);
           else if (String(getSelection()) === '') look(index, true);
         }}
         onDblClick={(event) => {
           const index = indexUnder(event);
           if (index >= 0) props.onEdit?.(index);
         }} />
  );
}
