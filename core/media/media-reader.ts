import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cpu } from '../cpu/cpu.ts'
import { bufferOf } from '../cpu/thread-work.ts'
import { Failure } from '../failure.ts'
import type { Files } from '../files/files.ts'
import type { Log } from '../log.ts'
import type { Config } from '../models/config.ts'
import type { FileRecord, Store } from '../store/store.ts'
import type { Resolve } from './checked-url.ts'
import { fetchRefusal, MediaTooLarge, openFetcher } from './fetch.ts'
import {
  emptyFailure,
  type FetchedKind,
  imageRules,
  type MediaInput,
  type MediaSender,
  missingContent,
  tooLargeFailure,
  writeFailed,
} from './media-input.ts'
import { noBase64, ownOrigins, readSource, type Source } from './source.ts'

/** Media of a request: its sender, the field that names it, where its bytes are, and what it must be. */
export interface SentMedia {
  sender: MediaSender
  field: string
  source: Source
  kind: FetchedKind
}

export interface MediaReaderOptions {
  config: Pick<Config, 'allowed_hosts' | 'limits' | 'media' | 'public_url'>
  store: { files: Pick<Store['files'], 'find'> }
  files: Pick<Files, 'find' | 'verify' | 'open' | 'pathOf'>
  cpu: Pick<Cpu, 'bytesOfBase64'>
  log: Log
  /** Resolves names. Default: the system's resolver. */
  resolve?: Resolve
}

/** Opens the reader of media: from another server, from the request itself, or from a stored file. */
export function openMediaReader({ config, store, files, cpu, log, resolve }: MediaReaderOptions) {
  const fetcher = openFetcher({ media: config.media, log, resolve })
  const maxBytes: Record<FetchedKind, number> = {
    image: imageRules.maxBytes,
    mask: imageRules.maxBytes,
    video: config.limits.upload_size,
    audio: config.limits.audio_size,
    file: config.limits.upload_size,
  }

  const tooLarge = ({ field, kind }: SentMedia) => tooLargeFailure(field, kind, maxBytes[kind])
  function checkSize(sent: SentMedia, bytes: number): void {
    if (bytes > maxBytes[sent.kind]) throw tooLarge(sent)
    if (bytes === 0 && sent.kind !== 'file') throw emptyFailure(sent.field, sent.kind)
  }

  /**
   * Resolves with the record of a stored file; undefined for media that are not stored on this server. Rejects with the
   * same Failure `not_found` for a missing file and for a file of another organization.
   */
  async function stored({ sender, field, source }: SentMedia): Promise<FileRecord | undefined> {
    if (source.from === 'file') {
      const file = await files.find(sender.organizationId, source.id)
      if (file) return file
      throw new Failure('not_found', `'${field}' names the file ${source.id}, which does not exist.`)
    }
    if (source.from !== 'link') return undefined
    // The signature gives the right to read the file, also one of another organization.
    const file = files.verify(source.id, source.exp, source.sig) ? await store.files.find(source.id) : undefined
    const available = file && (await files.find(file.organizationId, file.id))
    if (available) return available
    throw new Failure('url_fetch_failed', fetchRefusal)
  }

  /** Calls `onPiece` with each piece of media that are not stored on this server yet. */
  async function receive(sent: SentMedia, onPiece: (piece: Uint8Array) => unknown): Promise<void> {
    const { sender, field, source, kind } = sent
    if (source.from === 'bytes') {
      checkSize(sent, source.content.byteLength)
      await onPiece(source.content)
    } else if (source.from === 'data') {
      const bytes = await cpu.bytesOfBase64(source.text)
      if (!bytes) throw noBase64(source.text, field)
      checkSize(sent, bytes.byteLength)
      await onPiece(bytes)
    } else if (source.from === 'http')
      try {
        const { organizationId, signal } = sender
        await fetcher.fetch({ organizationId, url: source.url, maxBytes: maxBytes[kind], signal }, onPiece)
      } catch (thrown) {
        throw thrown instanceof MediaTooLarge ? tooLarge(sent) : thrown
      }
  }

  return {
    maxBytes,
    stored,
    /** Returns where the bytes of a value are. Throws Failure `invalid_value` if it names no media. */
    sourceOf: (sender: MediaSender, field: string, value: MediaInput): Source =>
      typeof value === 'string'
        ? readSource(value, field, ownOrigins(value, sender.origin, config))
        : value instanceof Uint8Array
          ? { from: 'bytes', content: value }
          : { from: 'path', ...value },

    async bytesOf(sent: SentMedia): Promise<Buffer> {
      const { field, source } = sent
      if (source.from === 'path') {
        checkSize(sent, source.bytes)
        return readFile(source.path)
      }
      const file = await stored(sent)
      if (!file) {
        const pieces: Uint8Array[] = []
        await receive(sent, piece => pieces.push(piece))
        // A single piece is not copied: copying megabytes would block the event loop.
        const [only] = pieces
        return only && pieces.length === 1 ? bufferOf(only) : Buffer.concat(pieces)
      }
      checkSize(sent, file.bytes)
      await using handle = await files.open(file)
      if (!handle) throw missingContent(field)
      return await handle.readFile()
    },

    /** Resolves with the path of a file: of a stored one, or of a new one in the folder. */
    async pathOf(sent: SentMedia, folder: string): Promise<string> {
      const { source } = sent
      if (source.from === 'path') {
        checkSize(sent, source.bytes)
        return source.path
      }
      const file = await stored(sent)
      if (file) {
        checkSize(sent, file.bytes)
        return files.pathOf(file)
      }
      const path = join(folder, 'sent')
      await using handle = await open(path, 'wx', 0o600)
      await receive(sent, piece => handle.writeFile(piece).catch(writeFailed))
      return path
    },
  }
}
