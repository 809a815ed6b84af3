import { z } from 'zod'
import { Failure } from '../failure.ts'

/** Properties of a video or audio file. */
export interface MediaProbe {
  kind: 'video' | 'audio'
  /** Pixels after rotation; null for audio. */
  width: number | null
  height: number | null
  durationMs: number
  /** Frames a second on average; null for audio. */
  fps: number | null
  /** Null for audio, and if the container does not store it. */
  frames: number | null
  /** Codec of the video track, or of the audio track without one: `h264`, `opus`. */
  codec: string
  hasAudio: boolean
  /** Name of the container in ffprobe: `mov,mp4,m4a,3gp,3g2,mj2`. */
  container: string
}

const numeral = z
  .string()
  .regex(/^\d+(\.\d+)?$/)
  .transform(Number)
  .optional()
  .catch(undefined)

const Stream = z.object({
  codec_type: z.string().optional(),
  codec_name: z.string().max(64).optional(),
  width: z.int().positive().optional(),
  height: z.int().positive().optional(),
  avg_frame_rate: z.string().optional(),
  r_frame_rate: z.string().optional(),
  duration: numeral,
  nb_frames: numeral,
  nb_read_packets: numeral,
  disposition: z.object({ attached_pic: z.number().optional() }).optional(),
  side_data_list: z.array(z.object({ rotation: z.number().optional() })).optional(),
})
const Report = z.object({
  streams: z.array(Stream).default([]),
  format: z.object({ duration: numeral, format_name: z.string().max(64).default('') }),
})

/** Parses the JSON output of ffprobe. Pure. Throws Failure `invalid_video` for a file without video and audio. */
export function readProbe(text: Buffer): MediaProbe {
  const report = Report.safeParse(JSON.parse(text.toString('utf8')))
  const { streams, format } = report.success ? report.data : { streams: [], format: { duration: 0, format_name: '' } }
  const video = streams.find(one => one.codec_type === 'video' && one.disposition?.attached_pic !== 1)
  const main = video ?? streams.find(one => one.codec_type === 'audio')
  if (!main?.codec_name || (video && !(video.width && video.height)))
    throw new Failure('invalid_video', 'The file has neither video nor audio.')
  const hasAudio = streams.some(one => one.codec_type === 'audio')
  const common = { codec: main.codec_name, hasAudio, container: format.format_name }
  const seconds = format.duration ?? main.duration ?? 0
  const durationMs = Math.round(seconds * 1000)
  if (!video) return { kind: 'audio', width: null, height: null, durationMs, fps: null, frames: null, ...common }
  const rotated = video.side_data_list?.some(({ rotation = 0 }) => Math.abs(rotation) % 180 === 90) ?? false
  const [width, height] = rotated ? [video.height!, video.width!] : [video.width!, video.height!]
  const fps = rate(video.avg_frame_rate) ?? rate(video.r_frame_rate)
  const frames = video.nb_frames ?? video.nb_read_packets ?? null
  return { kind: 'video', width, height, durationMs, fps, frames, ...common }
}

/**
 * Returns the duration in milliseconds from the progress report of ffmpeg, 0 without one. The report has the time at
 * which the last packet is decoded: of a video, frames that are shown later may come before it. Pure.
 */
export function measuredMs(progress: string, { fps, frames }: Pick<MediaProbe, 'fps' | 'frames'>): number {
  // Both members are in microseconds, whatever their names say.
  const last = [...progress.matchAll(/^out_time_[um]s=(\d+)$/gm)].at(-1)
  if (last === undefined) return 0
  const frameMs = fps ? 1000 / fps : 0
  return Math.round(Math.max(Number(last[1]) / 1000 + frameMs, (frames ?? 0) * frameMs))
}

/** Returns the value of a fraction such as `30000/1001`, to three decimal places. */
function rate(text = ''): number | null {
  const [above = 0, below = 0] = text.split('/').map(Number)
  return above > 0 && below > 0 ? Math.round((above / below) * 1000) / 1000 : null
}

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
  ['webm', 'video/webm', 'audio/webm'],
  ['mp3', null, 'audio/mpeg'],
  ['wav', null, 'audio/wav'],
  ['flac', null, 'audio/flac'],
  ['ogg', null, 'audio/ogg'],
]
const endings: Record<string, string> = {
  'video/mp4': 'mp4',
  'audio/mp4': 'm4a',
  'video/webm': 'webm',
  'audio/webm': 'webm',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/flac': 'flac',
  'audio/ogg': 'ogg',
}
