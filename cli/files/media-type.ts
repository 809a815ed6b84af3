import { extname } from 'node:path'

/** Detects the type by the first bytes, because names can be wrong. The name only separates M4A audio from MP4 video. */
export function mediaType(bytes: Buffer, path: string): string | undefined {
  const head = bytes.subarray(0, 16).toString('latin1')
  if (head.startsWith('\u0089PNG\r\n\u001a\n')) return 'image/png'
  if (head.startsWith('\u00ff\u00d8\u00ff')) return 'image/jpeg'
  if (/^GIF8[79]a/.test(head)) return 'image/gif'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WAVE') return 'audio/wav'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp'
  if (head.startsWith('fLaC')) return 'audio/flac'
  if (head.startsWith('OggS')) return 'audio/ogg'
  if (head.startsWith('ID3') || /^\u00ff[\u00e2-\u00ff]/.test(head)) return 'audio/mpeg'
  if (/^ftypavi[fs]/.test(head.slice(4))) return 'image/avif'
  if (head.slice(4, 8) === 'ftyp')
    return head.slice(8, 11) === 'M4A' || extname(path).toLowerCase() === '.m4a'
      ? 'audio/mp4'
      : head.slice(8, 10) === 'qt'
        ? 'video/quicktime'
        : 'video/mp4'
  if (head.startsWith('\u001aE\u00df\u00a3')) return 'video/webm'
  return undefined
}
