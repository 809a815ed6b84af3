import { setImmediate as turn } from 'node:timers/promises'
import { openCameraMove } from './camera-move.ts'
import { byRows, type Canvas, openCanvas } from './canvas.ts'
import { drawCounter } from './counter.ts'
import { encodeVideo, evenSize } from './encode-video.ts'
import { asAac, fromFile } from './ffmpeg.ts'
import { captionOf, patternOf } from './image-tasks.ts'
import { readImage } from './images.ts'
import { openWaveform, readSound } from './sound.ts'
import type { Draw } from './work.ts'

/** Draws the prompt over a moving pattern derived from the seed, as a seamless loop. */
export const textToVideo: Draw = async work => {
  const { num_frames: total, seed } = work.inputs
  const size = await evenSize(work)
  const caption = await captionOf(work, { left: 0, top: 0, ...size }, 'middle')
  const paint = patternOf(work, seed, size)
  return encodeVideo(work, size, async (canvas, index) => {
    await paint(canvas, index / total, work.signal)
    caption(canvas)
    drawCounter(canvas, index + 1, total)
  })
}

/** Zooms into the input image, to a part chosen by the seed. */
export const imageToVideo: Draw = async work => {
  const { num_frames: total, image, seed } = work.inputs
  const size = await evenSize(work)
  const caption = await captionOf(work, { left: 0, top: 0, ...size }, 'foot')
  const cameraMove = await openCameraMove(image!, size, seed)
  return encodeVideo(work, size, async (canvas, index) => {
    await cameraMove(canvas, total === 1 ? 0 : index / (total - 1), work.signal)
    caption(canvas)
    drawCounter(canvas, index + 1, total)
  })
}

/** Draws the audio as a waveform over the input image, or over a pattern if there is none, and adds the audio track. */
export const speechToVideo: Draw = async work => {
  const { num_frames: total, fps, image, audio, seed } = work.inputs
  const size = await evenSize(work)
  const sound = await readSound(work, audio!)
  const caption = await captionOf(work, { left: 0, top: 0, ...size }, 'middle')
  const background = openCanvas(size.width, size.height)
  if (image) await flatten(await readImage(image, size, 'cover'), background, work.signal)
  else await patternOf(work, seed, size)(background, 0, work.signal)
  await turn()
  caption(background)
  await turn()
  const wave = openWaveform(sound, background)
  await turn()
  const seconds = String(total / fps)
  return encodeVideo(
    work,
    size,
    async (canvas, index) => {
      canvas.data.set(background.data)
      await turn()
      wave(canvas, (index + 0.5) / fps)
      drawCounter(canvas, index + 1, total)
    },
    ['-t', seconds, ...fromFile(audio!), '-map', '0:v:0', '-map', '1:a:0', ...asAac],
  )
}

/** Copies an image; transparent pixels become black. */
async function flatten(from: Canvas, to: Canvas, signal: AbortSignal): Promise<void> {
  const rowBytes = to.width * 4
  await byRows(to.height, signal, y => {
    for (let at = y * rowBytes; at < (y + 1) * rowBytes; at += 4) {
      const alpha = from.data[at + 3]! + 1
      for (let channel = at; channel < at + 3; channel++) to.data[channel] = (from.data[channel]! * alpha) >> 8
      to.data[at + 3] = 255
    }
  })
}
