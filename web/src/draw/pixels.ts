// Images as numbers: pictures go through canvases, because the page's policy lets none in by address.

// A row of a picture, red, green and blue of each pixel, into the bytes of a canvas.
export function putRow(target: Uint8ClampedArray, width: number, row: number, values: readonly number[]): void {
  let at = row * width * 4;
  for (let index = 0; index + 2 < values.length && index < width * 3; index += 3) {
    target[at++] = values[index]!;
    target[at++] = values[index + 1]!;
    target[at++] = values[index + 2]!;
    target[at++] = 255;
  }
}

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; ++index) bytes[index] = letters.charCodeAt(index);
  return bytes;
}

export function base64OfBytes(bytes: Uint8Array): string {
  let letters = '';
  for (let at = 0; at < bytes.length; at += 0x8000) letters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(letters);
}

export function pngBlob(base64: string): Blob {
  return new Blob([bytesOfBase64(base64)], {type: 'image/png'});
}

export async function drawBlob(canvas: HTMLCanvasElement, blob: Blob): Promise<void> {
  const image = await createImageBitmap(blob);
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext('2d')?.drawImage(image, 0, 0);
  image.close();
}

export interface Fitted { png: string; canvas: HTMLCanvasElement; wasScaled: boolean }

// A picture of any size as a PNG of the model's: as it is where it fits, otherwise its middle, scaled.
export async function fitImage(file: Blob, width: number, height: number): Promise<Fitted> {
  const image = await createImageBitmap(file);
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', {willReadFrequently: true});
  if (!context) throw new Error('this browser gives no canvas to draw on');
  const fits = image.width === width && image.height === height;
  const scale = Math.max(width / image.width, height / image.height);
  const [wide, high] = [width / scale, height / scale];
  context.imageSmoothingQuality = 'high';
  // Models know no transparency.
  context.fillStyle = '#fff';
  context.fillRect(0, 0, width, height);
  context.drawImage(image, (image.width - wide) / 2, (image.height - high) / 2, wide, high, 0, 0, width, height);
  image.close();
  const blob = fits && file.type === 'image/png' ? file : await pngOf(canvas);
  return {png: base64OfBytes(new Uint8Array(await blob.arrayBuffer())), canvas, wasScaled: !fits};
}

export function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => blob ? resolve(blob) : reject(new Error('this browser makes no PNG of the picture')), 'image/png');
  });
}
