import { join } from 'node:path'
import { type Canvas, openCanvas } from './canvas.ts'
import { asMp4, startFfmpeg } from './ffmpeg.ts'
import type { Size } from './images.ts'
import type { Work } from './work.ts'

export const videoFileName = 'video.mp4'

/** h264 with its halved colours has even sides only. */
export async function evenSize({ inputs, log }: Work): Promise<Size> {
  const even = { width: inputs.width & ~1, height: inputs.height & ~1 }
  if (even.width !== inputs.width || even.height !== inputs.height)
    await log(
      'WARN',
      `${inputs.width}x${inputs.height} is made ${even.width}x${even.height}: h264 has even sides only.`,
    )
  return even
}

/**
 * Draws a video frame after frame while ffmpeg writes what is drawn: `num_frames` of them at `fps`. `sound` are further
 * arguments that bring a second input in. The canvas that `draw` gets still holds an earlier frame.
 */
export async function encodeVideo(
  work: Work,
  size: Size,
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
  // One is drawn while the other is on its way.
  const canvases = [openCanvas(size.width, size.height), openCanvas(size.width, size.height)] as const
  let sent: Promise<void> = Promise.resolve()
  const program = { gone: false }
  void ended
    .catch(() => {})
    .then(() => {
      program.gone = true
    })
  try {
    await work.reach(0)
    for (let index = 0; index < total && !program.gone; index++) {
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
    // Nobody hears that the work has ended before the program is gone.
    await ended.catch(() => {})
    throw thrown
  }
  await work.reach(1)
  return [{ name: videoFileName, kind: 'video' as const }]
}

/** The last step is done when the file is. */
const almost = 0.999
