/** The forms in which sound is asked for. */
export const speechFormats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const
export type SpeechFormat = (typeof speechFormats)[number]

/** Content type and ending of a file. `pcm`: 16-bit little-endian samples, mono, 24 000 a second unless it says otherwise. */
export const speechForms: Readonly<Record<SpeechFormat, { contentType: string; ending: string }>> = {
  mp3: { contentType: 'audio/mpeg', ending: 'mp3' },
  opus: { contentType: 'audio/ogg', ending: 'ogg' },
  aac: { contentType: 'audio/aac', ending: 'aac' },
  flac: { contentType: 'audio/flac', ending: 'flac' },
  wav: { contentType: 'audio/wav', ending: 'wav' },
  pcm: { contentType: 'audio/pcm', ending: 'pcm' },
}

/** The content type that a sound is given: ours, with the rate of raw samples, which nothing else says. */
export function contentTypeOf(format: SpeechFormat, engineSays: string, rate?: number): string {
  const { contentType } = speechForms[format]
  return format === 'pcm' ? `${contentType};rate=${rate ?? rateOf(engineSays)}` : contentType
}

/** Raw samples a second where a caller does not say otherwise. */
export const pcmRate = 24_000

/** Raw samples a second, by the content type that an engine gives them. */
export const rateOf = (engineSays: string): number => Number(/\brate=(\d{4,6})\b/.exec(engineSays)?.[1]) || pcmRate

const starts: Readonly<Record<Exclude<SpeechFormat, 'pcm'>, (begin: Buffer) => boolean>> = {
  mp3: begin => begin.toString('latin1', 0, 3) === 'ID3' || (isSync(begin) && (begin[1]! & 0x06) !== 0),
  aac: begin => isSync(begin) && (begin[1]! & 0x06) === 0,
  opus: begin => begin.toString('latin1', 0, 4) === 'OggS',
  flac: begin => begin.toString('latin1', 0, 4) === 'fLaC',
  wav: begin => begin.toString('latin1', 0, 4) === 'RIFF' && begin.toString('latin1', 8, 12) === 'WAVE',
}

/** Frames of MPEG begin with eleven ones; the two bits of the layer are what tells AAC, with none, from MP3. */
const isSync = (begin: Buffer): boolean => begin[0] === 0xff && (begin[1]! & 0xe0) === 0xe0

/** Whether it begins as files of the format do. Raw samples begin with anything. */
export const isOfFormat = (begin: Buffer, format: SpeechFormat): boolean => format === 'pcm' || starts[format](begin)
