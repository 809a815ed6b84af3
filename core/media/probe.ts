import { z } from 'zod'
import { Failure } from '../failure.ts'

/** What a video or sound file is. */
export interface Probe {
  kind: 'video' | 'audio'
  /** Pixels, as it is shown; null for sound. */
  width: number | null
  height: number | null
  durationMs: number
  /** Frames a second on average; null for sound. */
  fps: number | null
  /** Null for sound, and where the container does not say. */
  frames: number | null
  /** Of the picture, or of the sound where there is none: `h264`, `opus`. */
  codec: string
  hasAudio: boolean
  /** ffprobe's name of it: `mov,mp4,m4a,3gp,3g2,mj2`. */
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
  width: z.number().int().positive().optional(),
  height: z.number().int().positive().optional(),
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

/** Reads what ffprobe says as JSON. Pure. Throws Failure `invalid_video` when it has found neither picture nor sound. */
export function readProbe(text: Buffer): Probe {
  const report = Report.safeParse(JSON.parse(text.toString('utf8')))
  const { streams, format } = report.success ? report.data : { streams: [], format: { duration: 0, format_name: '' } }
  const video = streams.find(one => one.codec_type === 'video' && one.disposition?.attached_pic !== 1)
  const shown = video ?? streams.find(one => one.codec_type === 'audio')
  if (!shown?.codec_name || (video && !(video.width && video.height)))
    throw new Failure('invalid_video', 'The file holds neither a video nor sound.')
  const sound = streams.some(one => one.codec_type === 'audio')
  const common = { codec: shown.codec_name, hasAudio: sound, container: format.format_name }
  const seconds = format.duration ?? shown.duration ?? 0
  const durationMs = Math.round(seconds * 1000)
  if (!video) return { kind: 'audio', width: null, height: null, durationMs, fps: null, frames: null, ...common }
  const turned = video.side_data_list?.some(({ rotation = 0 }) => Math.abs(rotation) % 180 === 90) ?? false
  const [width, height] = turned ? [video.height!, video.width!] : [video.width!, video.height!]
  const fps = rate(video.avg_frame_rate) ?? rate(video.r_frame_rate)
  const frames = video.nb_frames ?? video.nb_read_packets ?? null
  return { kind: 'video', width, height, durationMs, fps, frames, ...common }
}

/** A fraction such as `30000/1001`, to three places. */
function rate(text = ''): number | null {
  const [above = 0, below = 0] = text.split('/').map(Number)
  return above > 0 && below > 0 ? Math.round((above / below) * 1000) / 1000 : null
}
