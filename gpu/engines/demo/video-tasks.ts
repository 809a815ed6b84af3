import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import type { EngineFile } from '../../../core/tasks/protocols/generation-call.ts'
import { openCameraMove } from './camera-move.ts'
import { type Canvas, darken, drawOver, openCanvas } from './canvas.ts'
import { asAac, asMp4, type FfmpegRun, fromFile, startFfmpeg } from './ffmpeg.ts'
import { captionOf, patternOf } from './image-tasks.ts'
import { type ImageSize, readImage } from './images.ts'
import { openWaveform, readSound } from './sound.ts'
import type { DemoWork, Draw } from './work.ts'

/** Draws the prompt over a moving pattern derived from the seed, as a seamless loop. */
export const textToVideo: Draw = async work => {
  const { num_frames: total, seed } = work.inputs
  const size = await evenSize(work)
  const caption = await captionOf(work, size, 'middle')
  const paint = patternOf(work, seed, size)
  return encodeVideo(work, size, async (canvas, index) => {
    await paint(canvas, index / total, work.signal)
    caption(canvas)
  })
}

/** Zooms into the input image, to a part chosen by the seed. */
export const imageToVideo: Draw = async work => {
  const { num_frames: total, image, seed } = work.inputs
  const size = await evenSize(work)
  const caption = await captionOf(work, size, 'foot')
  const cameraMove = await openCameraMove(image!, size, seed)
  return encodeVideo(work, size, async (canvas, index) => {
    await cameraMove(canvas, total === 1 ? 0 : index / (total - 1), work.signal)
    caption(canvas)
  })
}

/** Draws the audio as a waveform over the input image, or over a pattern if there is none, and adds the audio track. */
export const speechToVideo: Draw = async work => {
  const { num_frames: total, fps, image, audio, seed } = work.inputs
  const size = await evenSize(work)
  const sound = await readSound(work, audio!)
  const caption = await captionOf(work, size, 'middle')
  const background = openCanvas(size.width, size.height)
  if (image) await drawOver(background, await readImage(image, size, 'cover'), work.signal)
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
    },
    ['-t', seconds, ...fromFile(audio!), '-map', '0:v:0', '-map', '1:a:0', ...asAac],
  )
}

/**
 * Adds frames between those of a video with ffmpeg's motion interpolation, a real result that needs no model. The last
 * frame is repeated until `num_frames` is reached.
 */
export const videoInterpolation: Draw = async work => {
  const { num_frames: total, fps, video, width, height } = work.inputs
  await work.log('INFO', `ffmpeg interpolates to ${fps} frames a second, ${total} frames`)
  const filters = [
    'tpad=stop_mode=clone:stop=-1',
    `minterpolate=fps=${fps}:mi_mode=mci:mc_mode=obmc:me_mode=bidir`,
    `trim=end_frame=${total}`,
    `scale=${width & ~1}:${height & ~1}`,
  ]
  const run = startFfmpeg(
    work.ffmpeg,
    [
      fromFile(video!),
      ['-map', '0:v:0', '-map', '0:a:0?', '-vf', filters.join(',')],
      [...asAac, '-t', String(total / fps), '-progress', 'pipe:1', '-stats_period', '0.2'],
      asMp4(join(work.folder, videoFileName)),
    ].flat(),
    work.signal,
  )
  const { stdin, stdout } = run.child
  stdin.end()
  return finished(work, run, async () => {
    for await (const line of createInterface({ input: stdout })) {
      const frame = /^frame=\s*(\d+)/.exec(line)?.[1]
      if (frame !== undefined) await work.reach(Math.min(almost, Number(frame) / total))
    }
  })
}

const videoFileName = 'video.mp4'
const videoFiles: EngineFile[] = [{ name: videoFileName, kind: 'video' }]

/** Rounds the size down to even sides, which h264 with 4:2:0 chroma subsampling requires. */
async function evenSize({ inputs, log }: DemoWork): Promise<ImageSize> {
  const even = { width: inputs.width & ~1, height: inputs.height & ~1 }
  if (even.width !== inputs.width || even.height !== inputs.height)
    await log(
      'WARN',
      `${inputs.width}x${inputs.height} is rounded to ${even.width}x${even.height}: h264 requires even sides.`,
    )
  return even
}

/**
 * Draws `num_frames` frames at `fps` while ffmpeg encodes them. `sound` contains ffmpeg arguments for a second input.
 * The canvas passed to `draw` still contains an earlier frame; a counter is drawn over it.
 */
async function encodeVideo(
  work: DemoWork,
  size: ImageSize,
  draw: (canvas: Canvas, index: number) => Promise<void>,
  sound: readonly string[] = [],
) {
  const { num_frames: total, fps } = work.inputs
  const run = startFfmpeg(
    work.ffmpeg,
    [
      ['-f', 'rawvideo', '-pix_fmt', 'rgb0', '-s', `${size.width}x${size.height}`, '-r', String(fps), '-i', 'pipe:0'],
      sound,
      asMp4(join(work.folder, videoFileName)),
    ].flat(),
    work.signal,
  )
  const { child, ended } = run
  child.stdout.resume()
  // One canvas is drawn while the other is being written to ffmpeg.
  const canvases = [openCanvas(size.width, size.height), openCanvas(size.width, size.height)] as const
  let sent: Promise<void> = Promise.resolve()
  const program = { ended: false }
  void ended.catch(() => {}).then(() => (program.ended = true))
  return finished(work, run, async () => {
    await work.reach(0)
    for (let index = 0; index < total && !program.ended; index++) {
      const canvas = canvases[index % 2]!
      await draw(canvas, index)
      drawCounter(canvas, index + 1, total)
      await sent
      sent = new Promise(resolve => child.stdin.write(canvas.data, () => resolve()))
      await work.reach(((index + 1) / total) * almost)
    }
    await sent
    child.stdin.end()
  })
}

/** Returns the file once ffmpeg has written it. After an error ffmpeg is killed, and the call runs until it has exited. */
async function finished(work: DemoWork, { child, ended }: FfmpegRun, feed: () => Promise<void>) {
  try {
    await feed()
    await ended
  } catch (thrown) {
    child.kill('SIGKILL')
    await ended.catch(() => {})
    throw thrown
  }
  await work.reach(1)
  return videoFiles
}

/** Progress before the file is complete; the last step ends with the file. */
const almost = 0.999

/** Rows of three dots from top to bottom; the highest bit is the left dot. */
const shapes: Record<string, readonly number[]> = {
  '0': [7, 5, 5, 5, 7],
  '1': [2, 6, 2, 2, 7],
  '2': [7, 1, 7, 4, 7],
  '3': [7, 1, 7, 1, 7],
  '4': [5, 5, 7, 1, 1],
  '5': [7, 4, 7, 1, 7],
  '6': [7, 4, 7, 5, 7],
  '7': [7, 1, 1, 1, 1],
  '8': [7, 5, 7, 5, 7],
  '9': [7, 5, 7, 1, 7],
  '/': [1, 1, 2, 4, 4],
}

/** Draws `7/81` in the upper right corner, in dots that stay readable after video compression. */
function drawCounter(canvas: Canvas, index: number, total: number): void {
  const text = `${index}/${total}`
  const dot = Math.max(1, Math.floor(Math.min(canvas.height / 60, canvas.width / 80)))
  const width = (text.length * 4 + 1) * dot
  const left = canvas.width - width - 2 * dot
  const top = 2 * dot
  darken(canvas, { left, top, width, height: 7 * dot }, 90)
  for (const [at, sign] of Array.from(text).entries())
    for (const [row, bits] of shapes[sign]!.entries())
      for (let column = 0; column < 3; column++)
        if (bits & (4 >> column)) square(canvas, left + (at * 4 + 1 + column) * dot, top + (row + 1) * dot, dot)
}

function square({ data, width, height }: Canvas, left: number, top: number, side: number): void {
  for (let y = Math.max(0, top); y < Math.min(height, top + side); y++) {
    const from = (y * width + Math.max(0, left)) * 4
    data.fill(255, from, Math.max(from, (y * width + Math.min(width, left + side)) * 4))
  }
}
