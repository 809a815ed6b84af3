import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import { type Form, formOf } from '../client/form.ts'
import { unreadable, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { FileClient, NewUpload, StoredFile } from './file-client.ts'

/** Bytes. Larger files are sent in parts of this size. */
const partBytes = 64 << 20

interface UploadOptions {
  name?: string | undefined
  purpose: NewUpload['purpose']
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
    return await client.upload(formOfFile(facts, terminal.stdin as AsyncIterable<Buffer>), signal)
  }
  const size = sizeOf(path)
  const progress = (sent: number) =>
    terminal.progress(`Uploading ${name}: ${sizeText(sent)} of ${sizeText(size)} (${percent(sent, size)} %)`)
  try {
    if (size > partBytes) return await uploadParts(client, path, { size, facts, progress, signal })
    return await client.upload(formOfFile(facts, counted(createReadStream(path), 0, progress), size), signal)
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
      const form = formOf({}, { field: 'data', name: 'part', size: end - start, content: () => source })
      ids.push((await client.part(id, form, signal)).id)
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

/** The form of a whole file. Without a size it is sent in chunks. */
const formOfFile = ({ name, purpose, expiresMs }: NewUpload, source: AsyncIterable<Buffer>, size?: number): Form =>
  formOf(
    {
      purpose,
      'expires_after[anchor]': expiresMs === undefined ? undefined : 'created_at',
      'expires_after[seconds]': expiresMs === undefined ? undefined : String(Math.round(expiresMs / 1000)),
    },
    { name, size, content: () => source },
  )
