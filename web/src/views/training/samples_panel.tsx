// What a run wrote or drew while it trained, the newest first.
import {useEffect, useRef, useState} from 'preact/hooks';

import {getBlob, pathOfRun} from '../../api/http';
import type {Sample} from '../../api/types';
import {drawBlob} from '../../draw/pixels';
import {messageOf} from '../../api/error';
import {whole} from '../../ui/format';

function ImageSample(props: {run: string; file: string; step: number}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    const own = new AbortController();
    getBlob(`api/runs/${pathOfRun(props.run)}/samples/${encodeURIComponent(props.file)}`, own.signal)
        .then((blob) => canvas.current && drawBlob(canvas.current, blob))
        .catch((error: unknown) => {
          if (!own.signal.aborted) setProblem(messageOf(error));
        });
    return () => own.abort();
  }, [props.run, props.file]);
  return problem ? <p class="soft">{problem}</p> :
                   <canvas ref={canvas} class="pixels" role="img" aria-label={`Images drawn at step ${props.step}`} />;
}

const shownAtFirst = 4;

export function SamplesPanel(props: {run: string; samples: readonly Sample[] | undefined}) {
  const [showsAll, setAll] = useState(false);
  const {samples} = props;
  if (!samples) return null;
  if (samples.length === 0) {
    return <p class="soft">No samples were drawn; <code>train.sample_every</code> says how often they are.</p>;
  }
  const newest = [...samples].reverse();
  return (
    <>
      <ol class="drawn-samples">
        {(showsAll ? newest : newest.slice(0, shownAtFirst)).map((sample) => (
          <li key={`${sample.step} ${sample.kind}`}>
            <h3 class="soft">step {whole(sample.step)}</h3>
            {sample.kind === 'image' && sample.file ? <ImageSample run={props.run} file={sample.file} step={sample.step} /> :
                                                      <p class="mono sample-text">{sample.text}</p>}
          </li>
        ))}
      </ol>
      {newest.length > shownAtFirst ? (
        <button type="button" class="plain" aria-expanded={showsAll} onClick={() => setAll(!showsAll)}>
          {showsAll ? 'Fewer' : `All ${newest.length} samples`}
        </button>
      ) : null}
    </>
  );
}
