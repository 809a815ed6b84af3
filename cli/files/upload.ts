import { randomUUID } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import { Readable } from 'node:stream'
import { usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { unreadable } from '../terminal/unreadable.ts'
import type { FileClient, NewUpload, StoredFile } from './file-client.ts'

/** Bytes. Larger files are sent in parts of this size. */
const partBytes = 64 << 20

interface UploadOptions {
  name?: string | undefined
  purpose: string
  expires?: number | undefined
  terminal: Terminal
  signal: AbortSignal
}

/** Uploads a file, or standard input for `-`; shows its progress in a terminal. */
export async function uploadFile(client: FileClient, path: string, options: UploadOptions): Promise<StoredFile> {
  const { terminal, signal } = options
  const name = options.name ?? (path === '-' ? 'stdin' : basename(path))
  const facts: NewUpload = { name, purpose: options.purpose, expiresMs: options.expires }
  if (path === '-') {
    if (terminal.stdin.isTTY) throw usageFailure('Standard input is a terminal. Pipe the file in, or name its path.')
    const form = formOf(facts, terminal.stdin)
    return await client.upload(form.body, form.headers, signal)
  }
  const size = sizeOf(path)
  const progress = (sent: number) =>
    terminal.progress(`Uploading ${name}: ${sizeText(sent)} of ${sizeText(size)} (${percent(sent, size)} %)`)
  try {
    if (size > partBytes) return await uploadParts(client, path, { size, facts, progress, signal })
    const form = formOf(facts, counted(createReadStream(path), 0, progress), size)
    return await client.upload(form.body, form.headers, signal)
  } finally {
    terminal.progress('')
  }
}

const percent = (sent: number, size: number): number => Math.floor((100 * sent) / Math.max(1, size))

function sizeOf(path: string): number {
  try {
    const facts = statSync(path)
    if (!facts.isFile())
      throw Object.assign(new Error('it is not a file'), { code: facts.isDirectory() ? 'EISDIR' : '' })
    return facts.size
  } catch (cause) {
    throw unreadable(`The file ${path}`, cause)
  }
}

interface PartsOptions {
  size: number
  facts: NewUpload
  progress: (sent: number) => void
  signal: AbortSignal
}

async function uploadParts(client: FileClient, path: string, { size, facts, progress, signal }: PartsOptions) {
  const { id } = await client.create(facts, size)
  try {
    const ids: string[] = []
    for (let start = 0; start < size; start += partBytes) {
      const end = Math.min(size, start + partBytes)
      const source = counted(createReadStream(path, { start, end: end - 1 }), start, progress)
      const form = formOf(undefined, source, end - start)
      ids.push((await client.part(id, form.body, form.headers, signal)).id)
    }
    return await client.complete(id, ids)
  } catch (thrown) {
    // It expires in any case.
    await client.cancel(id).catch(() => {})
    throw thrown
  }
}

async function* counted(source: Readable, before: number, progress: (sent: number) => void): AsyncGenerator<Buffer> {
  let sent = before
  for await (const piece of source as AsyncIterable<Buffer>) {
    yield piece
    progress((sent += piece.length))
  }
}

/** The server replaces such characters in names too. */
const quoted = (name: string): string => name.replace(/["\r\n]/g, '_')

/** Makes a form of a file, or of a part if there are no facts. Without a size it is sent in chunks. */
function formOf(facts: NewUpload | undefined, source: AsyncIterable<Buffer>, size?: number) {
  const boundary = randomUUID()
  const field = (name: string, more: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}`
  const fields = facts
    ? [
        field('purpose', '', `${facts.purpose}\r\n`),
        ...(facts.expiresMs === undefined
          ? []
          : [
              field('expires_after[anchor]', '', 'created_at\r\n'),
              field('expires_after[seconds]', '', `${Math.round(facts.expiresMs / 1000)}\r\n`),
            ]),
      ].join('')
    : ''
  const file = field(facts ? 'file' : 'data', `; filename="${quoted(facts?.name ?? 'part')}"`, '')
  const head = Buffer.from(fields + file)
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`)
  async function* body(): AsyncGenerator<Buffer> {
    yield head
    yield* source
    yield tail
  }
  return {
    body: Readable.from(body(), { objectMode: false }),
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      ...(size === undefined ? {} : { 'content-length': String(head.length + size + tail.length) }),
    },
  }
}
