import { createReadStream } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cpu } from '../cpu/cpu.ts'
import { Failure } from '../failure.ts'
import type { FileFacts } from '../files/file-path.ts'
import type { Files } from '../files/files.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Config } from '../models/config.ts'
import type { FileRecord, Store } from '../store/store.ts'
import { type DecodedAudio, openAudioDecoder } from './audio-decoder.ts'
import type { Resolve } from './checked-url.ts'
import { fetchRefusal, MediaTooLarge, openFetcher } from './fetch.ts'
import type { Ffmpeg } from './ffmpeg.ts'
import {
  type FetchedKind,
  failureOfField,
  imageRules,
  type MediaInput,
  type MediaKind,
  type MediaSender,
  missingContent,
  type TakeOptions,
  tooLargeFailure,
  webpRules,
  writeFailed,
} from './media-input.ts'
import { checkProbe } from './probe.ts'
import { openSemaphore } from './semaphore.ts'
import { bytesOfDataUrl, ownOrigins, readSource, type Source } from './source.ts'
import { storedText } from './text-content.ts'

interface MediaOptions {
  config: Pick<Config, 'allowed_hosts' | 'limits' | 'media' | 'public_url'>
  store: { files: Pick<Store['files'], 'find'>; stats: () => Pick<ReturnType<Store['stats']>, 'writable'> }
  files: Files
  cpu: Pick<Cpu, 'reencode' | 'decodeAudio'>
  ffmpeg: Pick<Ffmpeg, 'found' | 'probe' | 'required' | 'decodeAudio'>
  log: Log
  /** Resolves names. Default: the system's resolver. */
  resolve?: Resolve
}

/** How long a file is kept until its job is created. After that it is kept as long as the job. */
const unclaimedMs = 3_600_000

/**
 * Turns media of a request into a file of the organization, checked by its content. A caller can send an http(s) URL, a
 * data: URL, the id of a file, or a signed URL of this server, whose file is read from the disk. The result is always a new
 * file, so that it is kept as long as its job even if the original is removed.
 */
export function openMedia({ config, store, files, cpu, ffmpeg, log, resolve }: MediaOptions) {
  const fetcher = openFetcher({ media: config.media, log, ...(resolve ? { resolve } : {}) })
  // Media in progress are held in memory, so their number is limited for each organization and in all.
  const full = 'Too many images, videos and audio files are being processed at once. Try again in a few seconds.'
  const ofOrganization = openSemaphore({ permits: 4, maxWaiting: 256, full })
  const ofAll = openSemaphore({ permits: 32, maxWaiting: 4096, full })
  const maxBytes: Record<FetchedKind, number> = {
    image: imageRules.maxBytes,
    mask: imageRules.maxBytes,
    video: config.limits.upload_size,
    audio: config.limits.audio_size,
    file: config.limits.upload_size,
  }
  const audioDecoder = openAudioDecoder({ ffmpeg, cpu, limits: config.limits })

  /** Rejects with the same Failure `not_found` for a missing file and for a file of another organization. */
  async function stored(
    sender: MediaSender,
    field: string,
    source: Source & { from: 'file' | 'link' },
  ): Promise<FileRecord> {
    if (source.from === 'file') {
      const file = await files.find(sender.organizationId, source.id)
      if (file) return file
      throw new Failure('not_found', `'${field}' names the file ${source.id}, which does not exist.`)
    }
    // The signature gives the right to read the file, also one of another organization.
    const file = files.verify(source.id, source.exp, source.sig) ? await store.files.find(source.id) : undefined
    const available = file && (await files.find(file.organizationId, file.id))
    if (available) return available
    throw new Failure('url_fetch_failed', fetchRefusal)
  }

  const tooLarge = (field: string, kind: FetchedKind) => tooLargeFailure(field, kind, maxBytes[kind])

  /** Calls `onPiece` with each piece of media that is not stored on this server yet. */
  async function receiveMedia(
    { organizationId, signal }: MediaSender,
    field: string,
    source: Extract<Source, { from: 'http' | 'data' | 'bytes' }>,
    kind: FetchedKind,
    onPiece: (piece: Uint8Array) => unknown,
  ): Promise<void> {
    if (source.from === 'bytes') {
      if (source.content.byteLength > maxBytes[kind]) throw tooLarge(field, kind)
      await onPiece(source.content)
      return
    }
    if (source.from === 'data') {
      if (source.bytes > maxBytes[kind]) throw tooLarge(field, kind)
      await onPiece(bytesOfDataUrl(source.text, field))
      return
    }
    try {
      const options = { organizationId, url: source.url, maxBytes: maxBytes[kind], ...(signal ? { signal } : {}) }
      await fetcher.fetch(options, onPiece)
    } catch (thrown) {
      throw thrown instanceof MediaTooLarge ? tooLarge(field, kind) : thrown
    }
  }

  async function bytesOf(sender: MediaSender, field: string, source: Source, kind: 'image' | 'mask'): Promise<Buffer> {
    if (source.from === 'path') {
      if (source.bytes > maxBytes[kind]) throw tooLarge(field, kind)
      return readFile(source.path)
    }
    if (source.from !== 'file' && source.from !== 'link') {
      const pieces: Uint8Array[] = []
      await receiveMedia(sender, field, source, kind, piece => pieces.push(piece))
      // A single piece is not copied: copying megabytes would block the event loop.
      const [only] = pieces
      return only && pieces.length === 1
        ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
        : Buffer.concat(pieces)
    }
    const file = await stored(sender, field, source)
    if (file.bytes > maxBytes[kind]) throw tooLarge(field, kind)
    await using handle = await files.open(file)
    if (!handle) throw missingContent(field)
    return await handle.readFile()
  }

  const factsFor = (sender: MediaSender): Pick<FileFacts, 'purpose' | 'jobId' | 'expiresAt'> => ({
    purpose: 'input',
    jobId: sender.jobId ?? null,
    expiresAt: Date.now() + unclaimedMs,
  })

  async function takeImage(
    sender: MediaSender,
    field: string,
    source: Source,
    kind: 'image' | 'mask',
    { alpha, webp }: TakeOptions,
  ) {
    const sent = await bytesOf(sender, field, source, kind)
    const as = kind === 'mask' && alpha ? 'alpha mask' : kind
    const { bytes, format, width, height } = await cpu.reencode(sent, webp ? webpRules : imageRules, as, { give: true })
    sender.signal?.throwIfAborted()
    const facts = { ...factsFor(sender), name: `${kind}.${format === 'jpeg' ? 'jpg' : format}`, width, height }
    return files.keep(sender.organizationId, bytes, { ...facts, contentType: `image/${format}` })
  }

  /** Resolves with the path of a video or audio file: that of a stored file, or of a new file in the folder. */
  async function pathOf(
    sender: MediaSender,
    field: string,
    source: Source,
    kind: 'video' | 'audio' | 'file',
    folder: string,
  ) {
    if (source.from === 'path') {
      if (source.bytes > maxBytes[kind]) throw tooLarge(field, kind)
      return source.path
    }
    if (source.from === 'file' || source.from === 'link') {
      const file = await stored(sender, field, source)
      if (file.bytes > maxBytes[kind]) throw tooLarge(field, kind)
      return files.pathOf(file)
    }
    const path = join(folder, 'sent')
    await using handle = await open(path, 'wx', 0o600)
    await receiveMedia(sender, field, source, kind, piece => handle.writeFile(piece).catch(writeFailed))
    return path
  }

  async function takeRecording(sender: MediaSender, field: string, source: Source, kind: 'video' | 'audio') {
    if (kind === 'video') await ffmpeg.required()
    await using workspace = await files.workspace(sender.jobId ?? newId('job'))
    const path = await pathOf(sender, field, source, kind, workspace.folder)
    const { contentType, ending, ...measured } =
      kind === 'video'
        ? await videoFacts(path, sender)
        : await audioDecoder.examine(path, join(workspace.folder, 'decoded'), sender.signal)
    const facts = { ...factsFor(sender), name: `${kind}.${ending}`, contentType, ...measured }
    return await files.receive(sender.organizationId, createReadStream(path), { ...facts, maxBytes: maxBytes[kind] })
  }

  async function videoFacts(path: string, { signal }: MediaSender) {
    const probe = await ffmpeg.probe(path, signal)
    const { width, height, durationMs } = probe
    return { ...checkProbe(probe, 'video'), width, height, durationMs }
  }

  async function decodeAudio(sender: MediaSender, field: string, source: Source): Promise<DecodedAudio> {
    const { writable } = store.stats()
    if (writable !== true) throw new Failure('disk_full', writable)
    const workspace = await files.workspace(sender.jobId ?? newId('job'))
    try {
      const path = await pathOf(sender, field, source, 'audio', workspace.folder)
      // A job is never refused here, because it has its slot already.
      if (sender.jobId === undefined) audioDecoder.admit()
      const decoded = await audioDecoder.decode(path, join(workspace.folder, 'decoded'), sender.signal)
      const release = audioDecoder.keep(decoded.bytes)
      const dispose = () => Promise.resolve(workspace[Symbol.asyncDispose]()).finally(release)
      return { ...decoded, [Symbol.asyncDispose]: dispose }
    } catch (thrown) {
      await workspace[Symbol.asyncDispose]()
      throw thrown
    }
  }

  const sourceOf = (sender: MediaSender, field: string, value: MediaInput): Source =>
    typeof value === 'string'
      ? readSource(value, field, ownOrigins(value, sender.origin, config))
      : value instanceof Uint8Array
        ? { from: 'bytes', content: value }
        : { from: 'path', ...value }

  /** Waits for a permit, runs the work, and turns its failures into failures of the field. */
  async function withPermit<T>(
    sender: MediaSender,
    field: string,
    kind: FetchedKind,
    work: () => Promise<T>,
  ): Promise<T> {
    const { organizationId, signal } = sender
    try {
      signal?.throwIfAborted()
      return await ofOrganization.run(organizationId, signal, () => ofAll.run('', signal, work))
    } catch (thrown) {
      signal?.throwIfAborted()
      if (!(thrown instanceof Failure) || thrown.status >= 500) throw thrown
      throw failureOfField(thrown, field, kind)
    }
  }

  return {
    /**
     * Resolves with an image as a data: URL, for an engine that gets it inside its request. Nothing is stored. `value` and
     * errors are as in `take`.
     */
    imageDataUrl: (sender: MediaSender, field: string, value: string): Promise<string> =>
      withPermit(sender, field, 'image', async () => {
        const sent = await bytesOf(sender, field, sourceOf(sender, field, value), 'image')
        const { bytes, format } = await cpu.reencode(sent, imageRules, 'image', { give: true })
        return `data:image/${format};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}`
      }),

    /** Resolves with the text of a stored file, with its name. Errors are as in `take`. */
    fileText: (sender: MediaSender, field: string, id: string): Promise<string> =>
      withPermit(sender, field, 'file', async () => {
        const source = readSource(id, field, [])
        if (source.from !== 'file') throw new Failure('invalid_value', `'${field}' must be the id of a file (file-…).`)
        return storedText(await stored(sender, field, source), field, files)
      }),

    /**
     * Resolves with the path of a file of any kind: of a stored one, or of a new one in the folder. `value` and errors are
     * as in `take`.
     */
    download: (sender: MediaSender, field: string, value: string, folder: string): Promise<string> =>
      withPermit(sender, field, 'file', () => pathOf(sender, field, sourceOf(sender, field, value), 'file', folder)),

    /**
     * Resolves with the samples of audio of at most `maxSeconds`, in the form that engines get. Nothing is stored.
     * `value` and errors are as in `take`.
     */
    samples: (sender: MediaSender, field: string, value: MediaInput, maxSeconds: number): Promise<Buffer> =>
      withPermit(sender, field, 'audio', async () => {
        await using sound = await decodeAudio(sender, field, sourceOf(sender, field, value))
        if (sound.seconds > maxSeconds)
          throw new Failure('invalid_audio', `The audio lasts longer than ${maxSeconds} s, the maximum.`)
        return (await readFile(sound.path)).subarray(0, sound.bytes)
      }),

    /**
     * Resolves with decoded audio in the form that engines get. Disposing of it deletes the file. `value` and errors are as
     * in `take`.
     */
    decodeAudio: (sender: MediaSender, field: string, value: MediaInput): Promise<DecodedAudio> =>
      withPermit(sender, field, 'audio', async () => decodeAudio(sender, field, sourceOf(sender, field, value))),

    /**
     * Stores media as a new file.
     * Rejects with Failure `invalid_value` (neither URL nor file), `url_fetch_failed`, `not_found`, `invalid_image`,
     * `invalid_video`, `invalid_audio`, `unsupported_task` (ffmpeg is missing) with the field as `param`, `no_capacity`,
     * `disk_full`, or the reason of the sender's signal.
     */
    take: (
      sender: MediaSender,
      field: string,
      value: MediaInput,
      kind: MediaKind,
      options: TakeOptions = {},
    ): Promise<FileRecord> =>
      withPermit(sender, field, kind, async () => {
        const source = sourceOf(sender, field, value)
        return kind === 'image' || kind === 'mask'
          ? takeImage(sender, field, source, kind, options)
          : takeRecording(sender, field, source, kind)
      }),
  }
}
export type { MediaInput, MediaKind, MediaSender, TakeOptions } from './media-input.ts'
export type Media = ReturnType<typeof openMedia>
