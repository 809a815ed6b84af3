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
