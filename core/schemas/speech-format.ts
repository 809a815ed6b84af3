/** Audio formats of speech that a request can name. */
export const speechFormats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] as const
export type SpeechFormat = (typeof speechFormats)[number]

/** Content type and file extension. `pcm`: 16-bit little-endian samples, mono, 24 000 a second unless `rate` says otherwise. */
export const speechForms: Readonly<Record<SpeechFormat, { contentType: string; ending: string }>> = {
  mp3: { contentType: 'audio/mpeg', ending: 'mp3' },
  opus: { contentType: 'audio/ogg', ending: 'ogg' },
  aac: { contentType: 'audio/aac', ending: 'aac' },
  flac: { contentType: 'audio/flac', ending: 'flac' },
  wav: { contentType: 'audio/wav', ending: 'wav' },
  pcm: { contentType: 'audio/pcm', ending: 'pcm' },
}

/** Returns the content type of audio. For raw samples it includes the rate, because the samples themselves do not. */
export function contentTypeOf(format: SpeechFormat, engineContentType: string, rate?: number): string {
  const { contentType } = speechForms[format]
  return format === 'pcm' ? `${contentType};rate=${rate ?? rateOf(engineContentType)}` : contentType
}

/** Default rate of raw audio, in samples a second. */
export const pcmRate = 24_000

/** Returns the rate of an engine's raw audio, in samples a second, from its content type. */
export const rateOf = (engineContentType: string): number =>
  Number(/\brate=(\d{4,6})\b/.exec(engineContentType)?.[1]) || pcmRate

const starts: Readonly<Record<Exclude<SpeechFormat, 'pcm'>, (begin: Buffer) => boolean>> = {
  mp3: begin => begin.toString('latin1', 0, 3) === 'ID3' || (isSync(begin) && (begin[1]! & 0x06) !== 0),
  aac: begin => isSync(begin) && (begin[1]! & 0x06) === 0,
  opus: begin => begin.toString('latin1', 0, 4) === 'OggS',
  flac: begin => begin.toString('latin1', 0, 4) === 'fLaC',
  wav: begin => begin.toString('latin1', 0, 4) === 'RIFF' && begin.toString('latin1', 8, 12) === 'WAVE',
}

/** MPEG frames begin with eleven one bits. The two layer bits are zero in AAC and not zero in MP3. */
const isSync = (begin: Buffer): boolean => begin[0] === 0xff && (begin[1]! & 0xe0) === 0xe0

/** Whether the first bytes match the format. Raw samples can begin with any bytes. */
export const isOfFormat = (begin: Buffer, format: SpeechFormat): boolean => format === 'pcm' || starts[format](begin)

/** Default maximum length of one speech input, in characters. */
export const defaultSpeechInput = 4096

/** The largest maximum that a configuration can set, in characters. */
export const longestSpeechInput = 65_536
