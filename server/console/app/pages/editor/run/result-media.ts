/** A file of a result that a browser can show. */
export interface ResultMedia {
  kind: 'image' | 'video' | 'audio'
  url: string
}

const maxDepth = 6

/** The images, videos and audio files in a result, by the content type beside each URL or the ending of its path. */
export function mediaIn(value: unknown, depth = 0): ResultMedia[] {
  if (value === null || typeof value !== 'object' || depth > maxDepth) return []
  if (Array.isArray(value)) return value.slice(0, 16).flatMap(one => mediaIn(one, depth + 1))
  const record = value as Record<string, unknown>
  const type = typeof record.content_type === 'string' ? record.content_type : ''
  return Object.entries(record).flatMap(([name, part]) => {
    // The file itself is shown beside it.
    if (name.startsWith('thumbnail')) return []
    if (typeof part !== 'string' || !/(^|_)url$/.test(name) || !/^(https?:\/\/|\/)/.test(part))
      return mediaIn(part, depth + 1)
    const kind = kindOf(type, part)
    return kind ? [{ kind, url: part }] : []
  })
}

const endings: [RegExp, ResultMedia['kind']][] = [
  [/\.(png|jpe?g|webp|gif)(\?|$)/i, 'image'],
  [/\.(mp4|webm|mov)(\?|$)/i, 'video'],
  [/\.(mp3|wav|flac|opus|ogg|aac)(\?|$)/i, 'audio'],
]

function kindOf(type: string, url: string): ResultMedia['kind'] | undefined {
  const [main] = type.split('/')
  if (main === 'image' || main === 'video' || main === 'audio') return main
  return endings.find(([ending]) => ending.test(url))?.[1]
}

/** The text that a result is about: an answer, a transcript. Empty if there is none. */
export function resultTextIn(value: unknown, depth = 0): string {
  if (value === null || typeof value !== 'object' || depth > maxDepth) return ''
  const parts = Array.isArray(value) ? value.slice(0, 4) : Object.entries(value)
  for (const part of parts) {
    const [name, one] = Array.isArray(value) ? ['', part] : (part as [string, unknown])
    if ((name === 'content' || name === 'text') && typeof one === 'string' && one !== '') return one
    const found = resultTextIn(one, depth + 1)
    if (found !== '') return found
  }
  return ''
}
