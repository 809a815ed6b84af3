/** Audio formats that are decoded without ffmpeg. */
export type AudioKind = 'wav' | 'mp3' | 'flac' | 'opus' | 'vorbis'

/** Returns the format of an audio file by its first bytes. `other`: a format that only ffmpeg decodes; null: not audio. */
export function audioKindOf(head: Buffer): { kind: AudioKind } | { other: string | null } {
  const text = (from: number, to: number) => head.toString('latin1', from, to)
  if (text(0, 4) === 'RIFF' && text(8, 12) === 'WAVE') return { kind: 'wav' }
  if (text(0, 4) === 'fLaC') return { kind: 'flac' }
  if (text(0, 4) === 'OggS') {
    // The first page contains only the header of the stream.
    const first = text(26, 120)
    if (first.includes('OpusHead')) return { kind: 'opus' }
    return first.includes('\x01vorbis') ? { kind: 'vorbis' } : { other: 'an Ogg file of another kind' }
  }
  if (text(0, 3) === 'ID3') return { kind: 'mp3' }
  const [first = 0, second = 0] = head
  // The layer bits of MPEG frames are 0 in AAC and not 0 in MP3 and its predecessors.
  if (first === 0xff && (second & 0xe0) === 0xe0) return (second & 0x06) === 0 ? { other: 'AAC' } : { kind: 'mp3' }
  if (text(4, 8) === 'ftyp') return { other: 'MP4 or M4A' }
  if (head.length >= 4 && head.readUInt32BE(0) === 0x1a45dfa3) return { other: 'WebM or Matroska' }
  return { other: null }
}
