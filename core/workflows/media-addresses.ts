import type { ReferenceStep } from './references.ts'

/** Returns inputs in which an object at a media path, or a list of such objects, is replaced by its URL. */
export function withMediaAddresses(
  value: unknown,
  isMediaPath: (path: readonly ReferenceStep[]) => boolean,
  at: readonly ReferenceStep[] = [],
): unknown {
  if (value === null || typeof value !== 'object') return value
  const address = isMediaPath(at) ? addressOf(value) : undefined
  if (address !== undefined) return address
  if (Array.isArray(value)) return value.map((part, index) => withMediaAddresses(part, isMediaPath, [...at, index]))
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [name, withMediaAddresses(part, isMediaPath, [...at, name])]),
  )
}

function addressOf(value: object): string | undefined {
  const first: unknown = Array.isArray(value) ? value[0] : value
  if (first === null || typeof first !== 'object') return undefined
  // A speech result has its file's URL in `audio_url`.
  const url = 'url' in first ? first.url : 'audio_url' in first ? first.audio_url : undefined
  return typeof url === 'string' ? url : undefined
}
