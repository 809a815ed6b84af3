import { Failure } from '../../../core/failure.ts'
import { type Canvas, darken } from './canvas.ts'
import { fromFile, startFfmpeg } from './ffmpeg.ts'
import type { DemoWork } from './work.ts'

/** Samples per second, enough for drawing. */
const rate = 4000
/** Seconds of audio visible in one frame. */
const visibleSeconds = 2

/** Reads the audio samples for the duration of the video. Throws Failure `invalid_audio`. */
export async function readSound({ inputs, ffmpeg, signal }: DemoWork, path: string): Promise<Int16Array> {
  const seconds = String(inputs.num_frames / inputs.fps + visibleSeconds)
  const { child, ended } = startFfmpeg(
    ffmpeg,
    ['-t', seconds, ...fromFile(path), '-map', '0:a:0', '-ac', '1', '-ar', String(rate), '-f', 's16le', 'pipe:1'],
    signal,
  )
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  try {
    await ended
  } catch (thrown) {
    if (!(thrown instanceof Failure) || thrown.code !== 'worker_error') throw thrown
    throw new Failure('invalid_audio', `The audio cannot be read: ${thrown.message}`, { cause: thrown })
  }
  const bytes = Buffer.concat(chunks)
  return new Int16Array(new Uint8Array(bytes).buffer, 0, bytes.length >> 1)
}

/**
 * Draws the audio around a time (in seconds) as bars; past audio is brighter than future audio. Darkens `background`
 * behind the bars; the canvases passed later must be copies of it.
 */
export function openWaveform(sound: Int16Array, background: Canvas): (canvas: Canvas, time: number) => void {
  const { width, height } = background
  const bar = Math.max(2, Math.round(width / 160))
  const bars = Math.floor(width / bar)
  const perBar = Math.max(1, Math.floor((visibleSeconds * rate) / bars))
  const middle = Math.round(height * 0.8)
  const tallest = Math.max(1, Math.floor(height * 0.16))
  const loudest = sound.reduce((max, sample) => Math.max(max, Math.abs(sample)), 1)
  const peak = (from: number): number => {
    let max = 0
    for (let at = Math.max(0, from); at < Math.min(sound.length, from + perBar); at++)
      max = Math.max(max, Math.abs(sound[at]!))
    return max / loudest
  }
  darken(background, { left: 0, top: middle - tallest, width, height: 2 * tallest }, 110)
  return (canvas, time) => {
    // Each bar represents a fixed section of the audio, so that bars move without flickering.
    const first = Math.round((time * rate) / perBar) - (bars >> 1)
    for (let index = 0; index < bars; index++) {
      const half = Math.max(1, Math.round(peak((first + index) * perBar) * tallest))
      const light = index <= bars >> 1 ? 255 : 150
      for (let y = middle - half; y < middle + half; y++) {
        const from = (y * canvas.width + index * bar) * 4
        canvas.data.fill(light, from, from + (bar - 1) * 4)
      }
    }
  }
}
