// Draws images, or completes the lower part of one that was dropped here.
import {useEffect, useRef, useState} from 'preact/hooks';

import type {Model} from '../../api/types';
import {download, fileName} from '../../draw/download';
import {fitImage, pngBlob} from '../../draw/pixels';
import {Problem, Validity} from '../../ui/controls';
import {digits, duration} from '../../ui/format';
import {CopyButton} from './actions';
import {drawImages, imageProblem, imageSeconds, isDrawing, pictures, stopImages, upper, type Picture} from './image_generation';
import {change, curlOf, imageBody, settings} from './settings';
import {SettingsPanel} from './settings_panel';

function PictureFigure(props: {picture: Picture; index: number; model: Model}) {
  const {picture, index, model} = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const {width, height} = picture.pixels;
  useEffect(() => canvas.current?.getContext('2d')?.putImageData(picture.pixels, 0, 0), [picture]);
  const drawnValues = width * (height - (upper.value?.rows ?? 0)) * 3;
  return (
    <figure>
      <canvas ref={canvas} width={width} height={height} class="pixels" role="img"
              aria-label={`Image ${index + 1}, ${picture.rows} of ${height} rows`} />
      <figcaption>
        {picture.png === null ? <span class="label">row {picture.rows} of {height}</span> : (
          <>
            {picture.nats === null ? null : (
              <span class="label">{digits(picture.nats / Math.LN2 / drawnValues, 3)} bits per dim</span>
            )}
            <button type="button" class="plain tight" onClick={() =>
              download(`${fileName(model.id, String(settings.value.seed), String(index + 1))}.png`, pngBlob(picture.png!))}>
              PNG
            </button>
          </>
        )}
      </figcaption>
    </figure>
  );
}

function UpperPart(props: {width: number; height: number; onProblem: (error: unknown) => void}) {
  const {width, height} = props;
  const [isOver, setOver] = useState(false);
  const shown = useRef<HTMLCanvasElement>(null);
  const kept = upper.value;
  const use = async (file: Blob | undefined) => {
    if (!file) return;
    try {
      const fitted = await fitImage(file, width, height);
      upper.value = {...fitted, rows: Math.floor(height / 2)};
      props.onProblem(undefined);
    } catch {
      props.onProblem(new Error('this file is no picture that the browser can read; take a PNG'));
    }
  };
  useEffect(() => {
    const paste = (event: ClipboardEvent) => void use([...event.clipboardData?.files ?? []][0]);
    addEventListener('paste', paste);
    return () => removeEventListener('paste', paste);
  });
  useEffect(() => {
    const context = shown.current?.getContext('2d');
    if (!context || !kept) return;
    context.clearRect(0, 0, width, height);
    context.globalAlpha = 0.25;
    context.drawImage(kept.canvas, 0, 0);
    context.globalAlpha = 1;
    context.drawImage(kept.canvas, 0, 0, width, kept.rows, 0, 0, width, kept.rows);
  }, [kept]);
  return (
    <div class={isOver ? 'drop over' : 'drop'}
         onDragOver={(event) => {
           event.preventDefault();
           setOver(true);
         }}
         onDragLeave={() => setOver(false)}
         onDrop={(event) => {
           event.preventDefault();
           setOver(false);
           void use(event.dataTransfer?.files[0]);
         }}>
      {kept ? (
        <>
          <canvas ref={shown} width={width} height={height} class="pixels" role="img"
                  aria-label={`The picture to complete; ${kept.rows} of ${height} rows are kept`} />
          <label for="rows" class="small">Keep {kept.rows} of {height} rows</label>
          <input id="rows" type="range" min={1} max={height - 1} value={kept.rows}
                 onInput={(event) => (upper.value = {...kept, rows: Number(event.currentTarget.value)})} />
          {kept.wasScaled ? <p class="small soft">Scaled to the model's {width} × {height}.</p> : null}
          <button type="button" class="plain tight" onClick={() => (upper.value = undefined)}>Take it away</button>
        </>
      ) : (
        <>
          <label for="picture">To complete a picture, drop or paste it here, or</label>
          <input id="picture" type="file" accept="image/*" onChange={(event) => void use(event.currentTarget.files?.[0])} />
        </>
      )}
    </div>
  );
}

export function ImagePlayground(props: {model: Model | undefined}) {
  const {model} = props;
  if (!model) return null;
  const [width, height] = [model.width ?? 32, model.height ?? 32];
  const body = () => {
    const all = imageBody(model.id, settings.value);
    return upper.value ? {...all, image: upper.value.png, rows: upper.value.rows} : all;
  };
  const curl = () => curlOf(new URL('v1/images/completions', document.baseURI).href, body());
  return (
    <div class="playground of-images">
      <details class="settings-box" open={matchMedia('(min-width: 64rem)').matches}>
        <summary>Sampler</summary>
        <SettingsPanel isImage mostTokens={undefined} />
      </details>
      <div class="text-column">
        <div class="pictures">
          {pictures.value.map((picture, index) => <PictureFigure key={index} picture={picture} index={index} model={model} />)}
          {pictures.value.length === 0 ? <p class="empty">Images appear here, row by row.</p> : null}
        </div>
        <Problem error={imageProblem.value} onRetry={() => void drawImages(model)} />
        <div class="actions">
          {isDrawing.value ? <button type="button" class="main" onClick={stopImages}>Stop</button> : (
            <button type="button" class="main" disabled={!!model.problem} onClick={() => void drawImages(model)}>
              {upper.value ? 'Complete' : 'Draw'}
            </button>
          )}
          <button type="button" disabled={isDrawing.value || pictures.value.length === 0} onClick={() => {
            change({seed: settings.value.seed + 1});
            void drawImages(model);
          }}>
            Others
          </button>
          <span class="spacer" />
          <CopyButton text={curl}>Copy as curl</CopyButton>
        </div>
        <p class="status soft">
          {imageSeconds.value === undefined ? '' : `Drawn in ${duration(imageSeconds.value)}`} <Validity label={model.validity} />
        </p>
      </div>
      <aside class="side" aria-label="Picture to complete">
        <UpperPart width={width} height={height} onProblem={(error) => (imageProblem.value = error)} />
      </aside>
    </div>
  );
}
