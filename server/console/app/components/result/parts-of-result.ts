import { ownUrl } from '../own-url.ts'

/** What a person can see or hear of a result, in the order in which it is shown. */
export type ResultPart =
  | { kind: 'image' | 'video' | 'audio' | 'file'; url: string; name: string; description: string; poster?: string }
  | { kind: 'text'; text: string; reasoning?: string }
  | { kind: 'ranking'; rows: { index: number; score: number; text?: string }[] }
  | { kind: 'vectors'; count: number; dimensions: number }
  | { kind: 'data'; value: unknown }

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])
const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const kindOf = (contentType: string): 'image' | 'video' | 'audio' | 'file' =>
  (['image', 'video', 'audio'] as const).find(kind => contentType.startsWith(`${kind}/`)) ?? 'file'

const typesByEnding: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  mp4: 'video/mp4',
  webm: 'video/webm',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  opus: 'audio/ogg',
  flac: 'audio/flac',
  aac: 'audio/aac',
}

/** The media type of the file at an address, by what the result says or else by the ending of its name. */
export const typeAt = (url: string, said?: string): string =>
  said ??
  /^data:([^;,]+)/.exec(url)?.[1] ??
  typesByEnding[/\.(\w+)(?:\?|$)/.exec(url)?.[1]?.toLowerCase() ?? ''] ??
  'application/octet-stream'

function fileOf(value: Json): ResultPart[] {
  const base64 = textIn(value.b64_json)
  const format = textIn(value.output_format) ?? 'png'
  const address = textIn(value.url) ?? (base64 && `data:image/${format};base64,${base64}`)
  if (address === undefined) return []
  const [width, height, duration] = [value.width, value.height, value.duration]
  const poster = textIn(value.thumbnail_url)
  return [
    {
      kind: kindOf(typeAt(address, textIn(value.content_type))),
      url: ownUrl(address),
      name: textIn(value.file_name) ?? 'result',
      description: [
        typeof width === 'number' && typeof height === 'number' ? `${width} × ${height}` : '',
        typeof duration === 'number' ? `${duration} s` : '',
      ]
        .filter(Boolean)
        .join(', '),
      ...(poster === undefined ? {} : { poster: ownUrl(poster) }),
    },
  ]
}

function messageOf(choice: Json): ResultPart[] {
  const message = isObject(choice.message) ? choice.message : choice
  const text = textIn(message.content) ?? textIn(message.text)
  const reasoning = textIn(message.reasoning_content) ?? textIn(message.reasoning)
  const calls = objects(message.tool_calls)
  return [
    ...(text === undefined && reasoning === undefined
      ? []
      : [{ kind: 'text' as const, text: text ?? '', ...(reasoning ? { reasoning } : {}) }]),
    ...(calls.length > 0 ? [{ kind: 'data' as const, value: calls }] : []),
  ]
}

/** Returns the parts of the result of any task; the whole value as data if it has none that is known. */
export function partsOfResult(result: unknown): ResultPart[] {
  if (typeof result === 'string') return [{ kind: 'text', text: result }]
  if (!isObject(result)) return result === null || result === undefined ? [] : [{ kind: 'data', value: result }]
  const files = [result.images, result.videos, result.files, result.data].flatMap(objects).flatMap(fileOf)
  const single = [result.video, result.image, result.audio, result.file].filter(isObject).flatMap(fileOf)
  const itself = typeof result.url === 'string' ? fileOf(result) : []
  const vectors = objects(result.data).filter(({ embedding }) => embedding !== undefined)
  const ranking = objects(result.results).filter(({ relevance_score }) => typeof relevance_score === 'number')
  const parts: ResultPart[] = [
    ...files,
    ...single,
    ...itself,
    ...objects(result.choices).flatMap(messageOf),
    ...(typeof result.text === 'string' ? [{ kind: 'text' as const, text: result.text }] : []),
    ...(vectors.length > 0 ? [vectorsOf(vectors)] : []),
    ...(ranking.length > 0 ? [{ kind: 'ranking' as const, rows: ranking.map(rankOf) }] : []),
  ]
  return parts.length > 0 ? parts : [{ kind: 'data', value: result }]
}

function vectorsOf(vectors: readonly Json[]): ResultPart {
  const [first] = vectors
  const dimensions = Array.isArray(first!.embedding) ? first!.embedding.length : 0
  return { kind: 'vectors', count: vectors.length, dimensions }
}

function rankOf({ index, relevance_score, document }: Json): { index: number; score: number; text?: string } {
  const text = textIn(document) ?? (isObject(document) ? textIn(document.text) : undefined)
  return {
    index: typeof index === 'number' ? index : 0,
    score: relevance_score as number,
    ...(text === undefined ? {} : { text }),
  }
}
