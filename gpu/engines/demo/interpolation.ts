import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { videoFileName } from './encode-video.ts'
import { asAac, asMp4, fromFile, startFfmpeg } from './ffmpeg.ts'
import type { Draw } from './work.ts'

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
  const { child, ended } = startFfmpeg(
    work.ffmpeg,
    [
      fromFile(video!),
      ['-map', '0:v:0', '-map', '0:a:0?', '-vf', filters.join(',')],
      [...asAac, '-t', String(total / fps), '-progress', 'pipe:1', '-stats_period', '0.2'],
      asMp4(join(work.folder, videoFileName)),
    ].flat(),
    work.signal,
  )
  child.stdin!.end()
  try {
    for await (const line of createInterface({ input: child.stdout! })) {
      const frame = /^frame=\s*(\d+)/.exec(line)?.[1]
      if (frame !== undefined) await work.reach(Math.min(0.999, Number(frame) / total))
    }
    await ended
  } catch (thrown) {
    child.kill('SIGKILL')
    await ended.catch(() => {})
    throw thrown
  }
  await work.reach(1)
  return [{ name: videoFileName, kind: 'video' }]
}
