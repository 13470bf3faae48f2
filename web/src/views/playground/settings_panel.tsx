// The sampler's settings.
import {Check, Dial} from '../../ui/controls';
import {change, lengthDials, samplingDials, settings, standard, type DialSpec} from './settings';

function SettingDial(props: {spec: DialSpec; label?: string | undefined; most?: number | undefined}) {
  const {spec} = props;
  return (
    <Dial id={`set-${spec.name}`} label={props.label ?? spec.label} least={spec.least} most={props.most ?? spec.most} step={spec.step}
          hint={spec.hint} value={settings.value[spec.name]} onChange={(value) => change({[spec.name]: value})} />
  );
}

export function SettingsPanel(props: {isImage: boolean; mostTokens: number | undefined}) {
  const chosen = settings.value;
  const isStandard = (Object.keys(standard) as (keyof typeof standard)[]).every((name) => chosen[name] === standard[name]);
  const mostTokens = Math.max(1, Math.min(props.mostTokens ?? 4096, 4096));
  return (
    <form class="settings" aria-label="Sampler" onSubmit={(event) => event.preventDefault()}>
      {lengthDials.filter((spec) => !props.isImage || spec.name !== 'max_tokens').map((spec) => (
        <SettingDial key={spec.name} spec={spec} label={props.isImage ? 'Images' : undefined}
                     most={spec.name === 'max_tokens' ? mostTokens : undefined} />
      ))}
      <Dial id="set-seed" label="Seed" least={0} most={Number.MAX_SAFE_INTEGER} slider={false} value={chosen.seed}
            hint="the same seed draws the same" onChange={(seed) => change({seed})} />
      <hr />
      {samplingDials.filter((spec) => !props.isImage || spec.name !== 'repetition_penalty').map((spec) => (
        <SettingDial key={spec.name} spec={spec} />
      ))}
      {props.isImage ? null : (
        <>
          <hr />
          <div class="stop-texts">
            <label for="set-stop" class="small">Stop at, one text per line</label>
            <textarea id="set-stop" rows={2} spellcheck={false} value={chosen.stop}
                      onChange={(event) => change({stop: event.currentTarget.value})} />
          </div>
          <Check label="Go on past the end token" checked={chosen.ignore_end}
                 onChange={(ignore_end) => change({ignore_end})} />
        </>
      )}
      <button type="button" class="plain tight" disabled={isStandard} onClick={() => change(standard)}>Reset all</button>
    </form>
  );
}
