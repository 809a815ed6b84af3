import { ownUrl } from '../addresses.ts'

export type Medium = 'image' | 'video' | 'audio'

/** A file in a result, whatever the task calls it. */
export interface ResultFile {
  kind: Medium
  url: string
  name: string
  id: string | undefined
  /** Width and height of an image or a video in pixels, where the result says them. */
  size: readonly [width: number, height: number] | undefined
}

type Members = Record<string, unknown>
const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const objects = (value: unknown): Members[] => (Array.isArray(value) ? value.filter(isObject) : [])
/** The objects of a list in a result. */
const listIn = (result: unknown, name: string): Members[] => (isObject(result) ? objects(result[name]) : [])

/** Returns the files of a result: `images`, `video`, or the audio of speech. */
export function filesOf(result: unknown): ResultFile[] {
  // That of a node with `for_each` is a list of results.
  if (Array.isArray(result)) return result.flatMap(filesOf)
  if (!isObject(result)) return []
  const file = (kind: Medium, one: Members): ResultFile[] =>
    typeof one.url === 'string'
      ? [
          {
            kind,
            url: one.url,
            name: typeof one.file_name === 'string' ? one.file_name : kind,
            id: idIn(one.url),
            size: sizeIn(one),
          },
        ]
      : []
  if (typeof result.audio_url === 'string')
    return file('audio', { url: result.audio_url, file_name: `speech.${String(result.format)}` })
  if (isObject(result.video)) return file('video', result.video)
  return objects(result.images).flatMap(one => file('image', one))
}

const sizeIn = ({ width, height }: Members): ResultFile['size'] =>
  typeof width === 'number' && typeof height === 'number' && height > 0 ? [width, height] : undefined

/** The id of the file at an address of this server: `/files/<id>/<name>`. */
const idIn = (url: string): string | undefined => /\/files\/([^/]+)\//.exec(url)?.[1]

/** Returns the cosine of the angle between each two vectors. */
export function similarities(vectors: readonly (readonly number[])[]): number[][] {
  const lengths = vectors.map(vector => Math.hypot(...vector))
  return vectors.map((a, row) =>
    vectors.map((b, column) => {
      const length = lengths[row]! * lengths[column]!
      return length === 0 ? 0 : a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0) / length
    }),
  )
}

/** The vectors of an embeddings result, in the order of the texts. */
export const vectorsOf = (result: unknown): number[][] =>
  listIn(result, 'data')
    .toSorted((a, b) => Number(a.index) - Number(b.index))
    .flatMap(({ embedding }) => (Array.isArray(embedding) ? [embedding as number[]] : []))

/** The documents of a rerank result with their scores, best first. */
export function rankingOf(result: unknown, inputs: unknown): { text: string; score: number; index: number }[] {
  const documents = isObject(inputs) && Array.isArray(inputs.documents) ? inputs.documents : []
  return listIn(result, 'results').map(({ index, relevance_score }) => {
    const one: unknown = documents[Number(index)]
    return {
      index: Number(index),
      score: Number(relevance_score),
      text:
        typeof one === 'string'
          ? one
          : isObject(one) && typeof one.text === 'string'
            ? one.text
            : `${Number(index) + 1}`,
    }
  })
}

export const scoresOf = (result: unknown): number[] => listIn(result, 'data').map(({ score }) => Number(score))

/** What a moderation says of each text: the categories with their scores, highest first. */
export function moderationsOf(result: unknown): { flagged: boolean; categories: { name: string; score: number }[] }[] {
  return listIn(result, 'results').map(({ flagged, category_scores }) => ({
    flagged: flagged === true,
    categories: Object.entries(isObject(category_scores) ? category_scores : {})
      .map(([name, score]) => ({ name, score: Number(score) }))
      .toSorted((a, b) => b.score - a.score),
  }))
}

/** A result that is shown as a table, by what it consists of. */
export type ResultKind = 'vectors' | 'ranking' | 'scores' | 'judgements'

/** Returns how to show a result; undefined if it is a text, or nothing that is known. */
export function kindOf(result: unknown): ResultKind | undefined {
  const [datum] = listIn(result, 'data')
  const [item] = listIn(result, 'results')
  if (datum && 'embedding' in datum) return 'vectors'
  if (item && 'relevance_score' in item) return 'ranking'
  if (datum && 'score' in datum) return 'scores'
  return item && 'category_scores' in item ? 'judgements' : undefined
}

/** The text of a result: of a completion, of a chat, of a transcription. */
export function textOf(result: unknown): string | undefined {
  if (!isObject(result)) return undefined
  if (typeof result.text === 'string') return result.text
  const [choice] = objects(result.choices)
  if (typeof choice?.text === 'string') return choice.text
  const message = choice?.message
  return isObject(message) && typeof message.content === 'string' ? message.content : undefined
}

const maxDepth = 6

/** The images, videos and audio files in a result, by the content type beside each URL or the ending of its path. */
export function mediaIn(value: unknown, depth = 0): Pick<ResultFile, 'kind' | 'url'>[] {
  if (value === null || typeof value !== 'object' || depth > maxDepth) return []
  if (Array.isArray(value)) return value.slice(0, 16).flatMap(one => mediaIn(one, depth + 1))
  const record = value as Record<string, unknown>
  const type = typeof record.content_type === 'string' ? record.content_type : ''
  return Object.entries(record).flatMap(([name, part]) => {
    // The file itself is shown beside it.
    if (name.startsWith('thumbnail')) return []
    if (typeof part !== 'string' || !/(^|_)url$/.test(name) || !/^(https?:\/\/|\/)/.test(part))
      return mediaIn(part, depth + 1)
    const kind = mediumOf(part, type)
    return kind ? [{ kind, url: part }] : []
  })
}

const endings: readonly (readonly [RegExp, Medium])[] = [
  [/\.(png|jpe?g|webp|gif)(\?|$)/i, 'image'],
  [/\.(mp4|webm|mov)(\?|$)/i, 'video'],
  [/\.(mp3|wav|flac|opus|ogg|aac)(\?|$)/i, 'audio'],
]

/** What is at an address: by its media type or else by the ending of its path. */
function mediumOf(url: string, type = /^data:(\w+\/)/.exec(url)?.[1] ?? ''): Medium | undefined {
  const [main] = type.split('/')
  if (main === 'image' || main === 'video' || main === 'audio') return main
  return endings.find(([ending]) => ending.test(url))?.[1]
}

/** Whether a text is the address of a file. */
export const isAddress = (text: string): boolean => /^(https?:\/\/|data:(image|video|audio)\/|\/files\/)/.test(text)

/** The file at an address, if it is of this server: nothing is loaded from other origins. */
export function ownMedium(address: string): Pick<ResultFile, 'kind' | 'url'> | undefined {
  if (!isAddress(address)) return undefined
  const url = ownUrl(address)
  const kind = mediumOf(address)
  return kind && (url.startsWith('/') || url.startsWith('data:')) ? { kind, url } : undefined
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
