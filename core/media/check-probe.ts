import { Failure } from '../failure.ts'
import type { MediaProbe } from './probe.ts'

const maxVideoMs = 600_000
const maxSide = 8192
const maxFps = 240

/**
 * Checks the limits of a video or audio file and returns its content type and extension. A video is accepted as audio if
 * it has an audio track. Pure. Throws Failure `invalid_video` or `invalid_audio`.
 */
export function checkProbe(
  probe: MediaProbe,
  expected: 'video' | 'audio',
  maxAudioMs = 3_600_000,
): { contentType: string; ending: string } {
  const code = expected === 'video' ? 'invalid_video' : 'invalid_audio'
  const refused = (what: string) => new Failure(code, `The ${expected} ${what}.`)
  const { width, height, durationMs, fps, frames } = probe
  if (expected === 'video') {
    if (probe.kind !== 'video' || !width || !height) throw refused('has no video track')
    if (width > maxSide || height > maxSide)
      throw refused(`is ${width} × ${height} pixels; no side may be longer than ${maxSide}`)
    if (fps !== null && fps > maxFps) throw refused(`has ${fps} frames a second; the maximum is ${maxFps}`)
    if (frames !== null && frames > (maxVideoMs / 1000) * maxFps) throw refused(`has ${frames} frames`)
  } else if (!probe.hasAudio) throw refused('has no audio track')
  const maxMs = expected === 'video' ? maxVideoMs : maxAudioMs
  if (durationMs > maxMs) throw refused(`lasts ${Math.round(durationMs / 1000)} s; the maximum is ${maxMs / 1000} s`)
  if (durationMs <= 0) throw refused('has no length')
  const [video, audio] = containers.find(([name]) => probe.container.includes(name))?.slice(1) ?? []
  const contentType = (expected === 'video' ? video : audio) ?? 'application/octet-stream'
  return { contentType, ending: endings[contentType] ?? 'bin' }
}

/** Part of ffprobe's name of a container, and the content type of such a file with and without video. */
const containers: readonly [name: string, video: string | null, audio: string | null][] = [
  ['mp4', 'video/mp4', 'audio/mp4'],
  ['webm', 'video/webm', null],
  ['mp3', null, 'audio/mpeg'],
  ['wav', null, 'audio/wav'],
  ['flac', null, 'audio/flac'],
  ['ogg', null, 'audio/ogg'],
]
const endings: Record<string, string> = {
  'video/mp4': 'mp4',
  'audio/mp4': 'm4a',
  'video/webm': 'webm',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/flac': 'flac',
  'audio/ogg': 'ogg',
}
