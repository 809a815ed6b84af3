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

    const lookUps: Promise<void>[] = []
    /** Copies a value; texts that may name a file are replaced in the copy once it is known. No promise for each value. */
    function copied(value: unknown, isMedia: boolean, put: (text: string) => void): unknown {
      if (typeof value === 'string') {
        if (value.startsWith('file-') || isMedia) lookUps.push(named(value, isMedia).then(put))
        return value
      }
      if (value === null || typeof value !== 'object') return value
      if (Array.isArray(value)) {
        const list: unknown[] = value.map((part, at) => copied(part, isMedia, text => void (list[at] = text)))
        return list
      }
      const record = Object.create(null) as Record<string, unknown>
      for (const [name, part] of Object.entries(value))
        record[name] = copied(part, mediaField.test(name), text => void (record[name] = text))
      return record
    }

    let seen = copied(inputs, false, text => void (seen = text))
    await Promise.all(lookUps)
    return { inputs: seen, foreign }
  }
}
export type ContentOf = ReturnType<typeof openContent>
