import { Failure } from '../failure.ts'
import type { Probe } from './probe.ts'

const maxVideoMs = 600_000
const maxSide = 8192
const maxFps = 240

/**
 * Whether a video or a sound that was sent is one that is worked with, and as what it is kept. Pure. Throws Failure
 * `invalid_video` or `invalid_audio`; sound in a video is taken as sound.
 */
export function checkProbe(
  probe: Probe,
  wanted: 'video' | 'audio',
  maxAudioMs = 3_600_000,
): { contentType: string; ending: string } {
  const code = wanted === 'video' ? 'invalid_video' : 'invalid_audio'
  const refused = (what: string) => new Failure(code, `The ${wanted === 'video' ? 'video' : 'sound'} ${what}.`)
  const { width, height, durationMs, fps, frames } = probe
  if (wanted === 'video') {
    if (probe.kind !== 'video' || !width || !height) throw refused('has no picture')
    if (width > maxSide || height > maxSide)
      throw refused(`is ${width} × ${height} pixels; no side may be longer than ${maxSide}`)
    if (fps !== null && fps > maxFps) throw refused(`has ${fps} frames a second; ${maxFps} is the most`)
    if (frames !== null && frames > (maxVideoMs / 1000) * maxFps) throw refused(`has ${frames} frames`)
  } else if (!probe.hasAudio) throw refused('has no sound in it')
  const most = wanted === 'video' ? maxVideoMs : maxAudioMs
  if (durationMs > most) throw refused(`lasts ${Math.round(durationMs / 1000)} s; ${most / 1000} s is the most`)
  if (durationMs <= 0) throw refused('has no length')
  const [video, audio] = containers.find(([name]) => probe.container.includes(name))?.slice(1) ?? []
  const contentType = (wanted === 'video' ? video : audio) ?? 'application/octet-stream'
  return { contentType, ending: endings[contentType] ?? 'bin' }
}

/** A word of ffprobe's names for containers, and what such a file is with and without pictures. */
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
