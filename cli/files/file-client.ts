import { createReadStream, existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Api, type Client, dataOf } from '../client/client.ts'
import { type Form, formOf } from '../client/form.ts'
import { CommandFailure, exitCodes, unreadable, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'

export type StoredFile = Api['File']

/** A file to upload. */
export interface NewUpload {
  name: string
  purpose: Api['UploadCreate']['purpose']
  expiresMs?: number | undefined
}

const of = (id: string) => ({ params: { path: { id } } })

export const fileOf = ({ api }: Client, id: string): Promise<StoredFile> =>
  dataOf(api.GET('/std/v1/files/{id}', of(id)))

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
export async function uploadFile(client: Client, path: string, options: UploadOptions): Promise<StoredFile> {
  const { terminal, signal } = options
  const name = options.name ?? (path === '-' ? 'stdin' : basename(path))
  const facts: NewUpload = { name, purpose: options.purpose, expiresMs: options.expires }
  if (path === '-') {
    if (terminal.stdin.isTTY) throw usageFailure('Standard input is a terminal. Pipe the file in, or name its path.')
    return await uploadWhole(client, formOfFile(facts, terminal.stdin as AsyncIterable<Buffer>), signal)
  }
  const size = sizeOf(path)
  const progress = (sent: number) =>
    terminal.progress(`Uploading ${name}: ${sizeText(sent)} of ${sizeText(size)} (${percent(sent, size)} %)`)
  try {
    if (size > partBytes) return await uploadParts(client, path, { size, facts, progress, signal })
    return await uploadWhole(client, formOfFile(facts, counted(createReadStream(path), 0, progress), size), signal)
  } finally {
    terminal.progress('')
  }
}

const uploadWhole = (client: Client, form: Form, signal: AbortSignal) =>
  client.postForm('/std/v1/files', form, signal) as Promise<StoredFile>

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

async function uploadParts(client: Client, path: string, { size, facts, progress, signal }: PartsOptions) {
  const { api } = client
  const { name: filename, purpose, expiresMs } = facts
  const seconds = Math.round((expiresMs ?? 0) / 1000)
  const expires_after = expiresMs === undefined ? undefined : ({ anchor: 'created_at', seconds } as const)
  const body = { bytes: size, filename, mime_type: 'application/octet-stream', purpose, expires_after }
  const { id } = await dataOf(api.POST('/std/v1/uploads', { body }))
  try {
    const ids: string[] = []
    for (let start = 0; start < size; start += partBytes) {
      const end = Math.min(size, start + partBytes)
      const source = counted(createReadStream(path, { start, end: end - 1 }), start, progress)
      const form = formOf({}, { field: 'data', name: 'part', size: end - start, content: () => source })
      const part = (await client.postForm(`/std/v1/uploads/${id}/parts`, form, signal)) as Api['UploadPart']
      ids.push(part.id)
    }
    const { file } = await dataOf(api.POST('/std/v1/uploads/{id}/complete', { ...of(id), body: { part_ids: ids } }))
    return file!
  } catch (thrown) {
    // It expires in any case.
    await api.POST('/std/v1/uploads/{id}/cancel', of(id)).catch(() => {})
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

interface DownloadOptions {
  /** A file, a folder, `-` for standard output. */
  out: string | undefined
  force: boolean
  terminal: Terminal
  signal: AbortSignal
}

const isFolder = (path: string): boolean => existsSync(path) && statSync(path).isDirectory()

/** Downloads a file. Resolves with its path; undefined if it was written to standard output. */
export async function downloadFile(
  client: Client,
  id: string,
  { out, force, terminal, signal }: DownloadOptions,
): Promise<string | undefined> {
  const content = client.content(`/std/v1/files/${encodeURIComponent(id)}/content`, signal)
  if (out === '-') {
    await pipeline(content, terminal.stdout, { end: false })
    return undefined
  }
  const file = await fileOf(client, id)
  // The server replaces what a path must not have; another server may not.
  const name = basename(file.filename) || id
  const path = out === undefined ? name : isFolder(out) ? join(out, name) : out
  if (!force && existsSync(path))
    throw usageFailure(`The file ${path} exists already. Choose another name, or replace it with --force.`)
  const partial = `${path}.partial`
  try {
    await using handle = await open(partial, 'w')
    let received = 0
    for await (const piece of content) {
      await handle.writeFile(piece)
      terminal.progress(`Downloading ${name}: ${sizeText((received += piece.length))} of ${sizeText(file.bytes)}`)
    }
  } catch (cause) {
    await rm(partial, { force: true })
    if (cause instanceof Error && 'syscall' in cause)
      throw new CommandFailure(exitCodes.io, 'invalid_value', `The file ${path} cannot be written: ${cause.message}.`, {
        cause,
      })
    throw cause
  } finally {
    terminal.progress('')
  }
  await rename(partial, path)
  return path
}
