import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'

/** A multipart form. Its body can be opened again if that of its file can, to repeat the request. */
export interface Form {
  headers: Record<string, string>
  body: () => Readable
}

export interface FormFile {
  /** The field; `file` if omitted. */
  field?: string
  name: string
  type?: string
  /** Bytes; without it the form is sent in chunks. */
  size?: number | undefined
  content: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

/** Characters that end a quoted name. The server replaces them in names too. */
const quoted = (name: string): string => name.replaceAll(/["\r\n]/g, '_')

/** Makes a form of text fields, of which absent ones are left out, and a file. */
export function formOf(
  fields: Readonly<Record<string, string | undefined>>,
  { field = 'file', name, type, size, content }: FormFile,
): Form {
  const boundary = `infer-${randomUUID()}`
  const part = (disposition: string) => `--${boundary}\r\ncontent-disposition: form-data; ${disposition}\r\n`
  const texts = Object.entries(fields).map(([key, value]) =>
    value === undefined ? '' : `${part(`name="${key}"`)}\r\n${value}\r\n`,
  )
  const header = type === undefined ? '' : `content-type: ${type}\r\n`
  const file = `${part(`name="${field}"; filename="${quoted(name)}"`)}${header}\r\n`
  const head = Buffer.from(texts.join('') + file)
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield head
    yield* content()
    yield tail
  }
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      ...(size === undefined ? {} : { 'content-length': String(head.length + size + tail.length) }),
    },
    body: () => Readable.from(bytes(), { objectMode: false }),
  }
}
