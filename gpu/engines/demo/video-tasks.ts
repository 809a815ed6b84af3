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

/** The prompt over a pattern of the seed that moves and comes back to where it began. */
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

/** A way over the given picture, from the whole of it to a part that the seed chooses. */
export const imageToVideo: Draw = async work => {
  const { num_frames: total, image, seed } = work.inputs
  const size = await evenSize(work)
  const caption = await captionOf(work, { left: 0, top: 0, ...size }, 'foot')
  const travel = await openCameraMove(image!, size, seed)
  return encodeVideo(work, size, async (canvas, index) => {
    await travel(canvas, total === 1 ? 0 : index / (total - 1), work.signal)
    caption(canvas)
    drawCounter(canvas, index + 1, total)
  })
}

/** The sound as a wave over the given picture, or over a pattern where there is none; the sound itself goes along. */
export const speechToVideo: Draw = async work => {
  const { num_frames: total, fps, image, audio, seed } = work.inputs
  const size = await evenSize(work)
  const sound = await readSound(work, audio!)
  const caption = await captionOf(work, { left: 0, top: 0, ...size }, 'middle')
  const ground = openCanvas(size.width, size.height)
  if (image) await flatten(await readImage(image, size, 'cover'), ground, work.signal)
  else await patternOf(work, seed, size)(ground, 0, work.signal)
  await turn()
  caption(ground)
  await turn()
  const wave = openWaveform(sound, ground)
  await turn()
  const seconds = String(total / fps)
  return encodeVideo(
    work,
    size,
    async (canvas, index) => {
      canvas.data.set(ground.data)
      await turn()
      wave(canvas, (index + 0.5) / fps)
      drawCounter(canvas, index + 1, total)
    },
    ['-t', seconds, ...fromFile(audio!), '-map', '0:v:0', '-map', '1:a:0', ...asAac],
  )
}

/** What is transparent becomes black. */
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
