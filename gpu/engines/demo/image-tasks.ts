import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { byRows, type Canvas, drawOver, openCanvas } from './canvas.ts'
import { type Caption, type CaptionBox, openCaption } from './caption.ts'
import { encodeImage, type ImageSize, readImage, readMask } from './images.ts'
import { openPattern } from './pattern.ts'
import type { DemoWork, Draw } from './work.ts'

export const textToImage: Draw = async work => {
  const caption = await captionOf(work, sizeOf(work), 'middle')
  return drawSeries(work, caption)
}

/**
 * Mixes the input image with a pattern; `strength` sets how much the pattern covers, at most 85 %. Several images are
 * side by side.
 */
export const imageToImage: Draw = async work => {
  const input = await readImages(work.inputs.images ?? [work.inputs.image!], sizeOf(work))
  const caption = await captionOf(work, sizeOf(work), 'foot')
  const cover = (canvas: Canvas) => drawOver(canvas, input, work.signal, 1 - maxCovered * work.inputs.strength)
  return drawSeries(work, caption, { cover })
}

/** Reads images as columns of equal width of one canvas. */
async function readImages(paths: readonly string[], size: ImageSize): Promise<Canvas> {
  if (paths.length === 1) return readImage(paths[0]!, size, 'cover')
  const canvas = openCanvas(size.width, size.height)
  for (const [at, path] of paths.entries()) {
    const left = Math.round((at * size.width) / paths.length)
    const width = Math.max(1, Math.round(((at + 1) * size.width) / paths.length) - left)
    const { data } = await readImage(path, { width, height: size.height }, 'cover')
    for (let y = 0; y < size.height; y++)
      canvas.data.set(data.subarray(y * width * 4, (y + 1) * width * 4), (y * size.width + left) * 4)
  }
  return canvas
}

/** Makes everything outside an ellipse transparent, if the request asks for a transparent background. */
async function cutOut({ inputs, signal }: DemoWork, { width, height, data }: Canvas): Promise<void> {
  if (inputs.background !== 'transparent') return
  await byRows(height, signal, y => {
    const down = (2 * y + 1) / height - 1
    for (let x = 0; x < width; x++) {
      const across = (2 * x + 1) / width - 1
      if (across * across + down * down > 1) data[(y * width + x) * 4 + 3] = 0
    }
  })
}

const maxCovered = 0.85
/** A preview of the largest size stays below the limit of a message. */
const previewQuality = 60

/**
 * Draws pattern and prompt where the mask is white and keeps the input image unchanged where it is black; grey mixes
 * both. A lower `strength` makes the new part more transparent.
 */
export const inpainting: Draw = async work => {
  const { signal, inputs } = work
  const size = sizeOf(work)
  const input = await readImage(inputs.image!, size, 'fill')
  const mask = await readMask(inputs.mask!, size)
  const editable = await boundsOf(mask, size, signal)
  if (!editable) await work.log('WARN', 'The mask is completely black, so the image stays unchanged.')
  const caption = editable ? await captionOf(work, editable, 'middle') : () => {}
  const restore = ({ data }: Canvas) =>
    byRows(size.height, signal, y => {
      for (let pixel = y * size.width; pixel < (y + 1) * size.width; pixel++) {
        const share = Math.round(mask[pixel]! * inputs.strength)
        for (let at = pixel * 4; at < pixel * 4 + 4; at++)
          data[at] = Math.round((data[at]! * share + input.data[at]! * (255 - share)) / 255)
      }
    })
  return drawSeries(work, caption, { restore })
}

const sizeOf = ({ inputs: { width, height } }: DemoWork) => ({ width, height })

/** The box is at the upper left corner unless it says otherwise. */
export function captionOf({ inputs, log }: DemoWork, box: ImageSize & Partial<CaptionBox>, place: 'middle' | 'foot') {
  const { prompt, negative_prompt: without, seed, num_inference_steps: steps, guidance_scale: guidance } = inputs
  const print = `infer demo · seed ${seed} · ${steps} steps · guidance ${guidance}${without ? ` · without: ${without}` : ''}`
  return openCaption({ prompt, print }, { left: 0, top: 0, ...box }, place, message => log('WARN', message))
}

/** With a `stage` below 1 the pattern has the waves of the steps until then. */
export const patternOf = ({ inputs }: DemoWork, seed: number, { width, height }: ImageSize = inputs, stage = 1) =>
  openPattern({ seed, width, height, steps: inputs.num_inference_steps * stage, guidance: inputs.guidance_scale })

/**
 * Writes `num_images` images, each with the next seed: the pattern, what `cover` draws over it, the caption, and what
 * `restore` brings back. Before stage 1 an image is unfinished, which is sent as a preview where previews were requested.
 */
async function drawSeries(
  work: DemoWork,
  caption: Caption,
  { cover, restore }: { cover?: (canvas: Canvas) => Promise<void>; restore?: (canvas: Canvas) => Promise<void> } = {},
) {
  const { num_images: total, seed, width, height, output_format: format, previews = 0 } = work.inputs
  const draw = async (imageSeed: number, stage: number) => {
    const canvas = openCanvas(width, height)
    await patternOf(work, imageSeed, work.inputs, stage)(canvas, 0, work.signal)
    await cover?.(canvas)
    await cutOut(work, canvas)
    if (stage === 1) caption(canvas)
    await restore?.(canvas)
    return canvas
  }
  const files = []
  await work.reach(0)
  for (let index = 0; index < total; index++) {
    for (let at = 1; at <= previews; at++) {
      const stage = at / (previews + 1)
      await work.reach((index + stage) / total)
      await work.preview(index, await encodeImage(await draw(seed + index, stage), 'webp', previewQuality))
    }
    const canvas = await draw(seed + index, 1)
    const name = `image-${index}.${format === 'jpeg' ? 'jpg' : format}`
    await writeFile(join(work.folder, name), await encodeImage(canvas, format as 'png' | 'jpeg' | 'webp'))
    files.push({ name, kind: 'image' as const })
    await work.reach((index + 1) / total)
  }
  return files
}

/** The bounding box of all pixels that are not black; undefined if there are none. */
async function boundsOf(mask: Uint8Array, size: { width: number; height: number }, signal: AbortSignal) {
  let [left, right, top, bottom] = [size.width, -1, size.height, -1]
  await byRows(size.height, signal, y => {
    for (let x = 0; x < size.width; x++) {
      if (mask[y * size.width + x] === 0) continue
      left = Math.min(left, x)
      right = Math.max(right, x)
      top = Math.min(top, y)
      bottom = y
    }
  })
  return right < 0 ? undefined : { left, top, width: right - left + 1, height: bottom - top + 1 }
}
