import { join } from 'node:path'
import { type Canvas, openCanvas } from './canvas.ts'
import { asMp4, startFfmpeg } from './ffmpeg.ts'
import type { ImageSize } from './images.ts'
import type { DemoWork } from './work.ts'

export const videoFileName = 'video.mp4'

/** Rounds the size down to even sides, which h264 with 4:2:0 chroma subsampling requires. */
export async function evenSize({ inputs, log }: DemoWork): Promise<ImageSize> {
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
 * The canvas passed to `draw` still contains an earlier frame.
 */
export async function encodeVideo(
  work: DemoWork,
  size: ImageSize,
  draw: (canvas: Canvas, index: number) => Promise<void>,
  sound: readonly string[] = [],
) {
  const { num_frames: total, fps } = work.inputs
  const { child, ended } = startFfmpeg(
    work.ffmpeg,
    [
      ['-f', 'rawvideo', '-pix_fmt', 'rgb0', '-s', `${size.width}x${size.height}`, '-r', String(fps), '-i', 'pipe:0'],
      sound,
      asMp4(join(work.folder, videoFileName)),
    ].flat(),
    work.signal,
  )
  child.stdout!.resume()
  // One canvas is drawn while the other is being written to ffmpeg.
  const canvases = [openCanvas(size.width, size.height), openCanvas(size.width, size.height)] as const
  let sent: Promise<void> = Promise.resolve()
  const program = { ended: false }
  void ended
    .catch(() => {})
    .then(() => {
      program.ended = true
    })
  try {
    await work.reach(0)
    for (let index = 0; index < total && !program.ended; index++) {
      const canvas = canvases[index % 2]!
      await draw(canvas, index)
      await sent
      sent = new Promise(resolve => child.stdin!.write(canvas.data, () => resolve()))
      await work.reach(((index + 1) / total) * almost)
    }
    await sent
    child.stdin!.end()
    await ended
  } catch (thrown) {
    child.kill('SIGKILL')
    // The call counts as running until ffmpeg has exited.
    await ended.catch(() => {})
    throw thrown
  }
  await work.reach(1)
  return [{ name: videoFileName, kind: 'video' as const }]
}

/** Progress before the file is complete; the last step ends with the file. */
const almost = 0.999
