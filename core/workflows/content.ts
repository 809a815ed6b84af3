import type { Files } from '../files/files.ts'
import { readSource } from '../media/source.ts'
import type { Store } from '../store/store.ts'

/** The organization of the inputs, and what this server's own URLs in them begin with. */
export interface InputsOwner {
  organizationId: string
  origin: string
}

export interface InputContent {
  /** The inputs with every file replaced by the hash of its content. */
  inputs: unknown
  /** Whether a URL of another server is named: its content may change. */
  foreign: boolean
}

/** Names of fields that hold URLs of images, videos or audio. */
const mediaField = /^(url|file)$|(^|_)(image|mask|video|audio)s?(_urls?)?$/

/** Makes inputs comparable by content, because one file may have many ids and URLs. */
export function openContent(options: {
  files: Pick<Files, 'find' | 'verify'>
  store: Pick<Store['files'], 'find'>
  publicUrl: string | undefined
}) {
  const { files, store, publicUrl } = options
  return async (inputs: unknown, { organizationId, origin }: InputsOwner): Promise<InputContent> => {
    let foreign = false

    async function named(text: string, isMedia: boolean): Promise<string> {
      if (text.startsWith('file-')) {
        const file = await files.find(organizationId, text)
        return file ? `sha256:${file.sha256}` : text
      }
      if (!isMedia || !/^https?:/i.test(text) || !URL.canParse(text) || text.length > 2048) return text
      const source = readSource(text, '', [origin, publicUrl ?? ''])
      // An invalid signature must not reveal the hash of a file.
      const own = source.from === 'link' && files.verify(source.id, source.exp, source.sig)
      const file = own ? await store.find(source.id) : undefined
      if (source.from === 'http') foreign = true
      return file ? `sha256:${file.sha256}` : text
    }

    async function visit(value: unknown, isMedia: boolean): Promise<unknown> {
      if (typeof value === 'string') return named(value, isMedia)
      if (value === null || typeof value !== 'object') return value
      if (Array.isArray(value)) return Promise.all(value.map(part => visit(part, isMedia)))
      const parts = Object.entries(value).map(async ([name, part]) => [name, await visit(part, mediaField.test(name))])
      return Object.fromEntries((await Promise.all(parts)) as [string, unknown][])
    }

    const seen = await visit(inputs, false)
    return { inputs: seen, foreign }
  }
}
export type ContentOf = ReturnType<typeof openContent>
