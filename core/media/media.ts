import { createReadStream } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cpu } from '../cpu/cpu.ts'
import { Failure, type FailureCode } from '../failure.ts'
import type { FileFacts, Files } from '../files/files.ts'
import { diskFailure } from '../files/write.ts'
import { newId } from '../ids.ts'
import type { Log } from '../log.ts'
import type { Config } from '../models/config.ts'
import type { FileRecord, Store } from '../store/store.ts'
import { type DecodedAudio, openAudioDecoder } from './audio-decoder.ts'
import { checkProbe } from './check-probe.ts'
import { fetchRefusal, openFetcher, type Resolve, TooLarge } from './fetch.ts'
import type { Ffmpeg } from './ffmpeg.ts'
import { openSemaphore } from './semaphore.ts'
import { bytesOfDataUrl, megabytes, ownOrigins, readSource, type Source } from './source.ts'

export type MediaKind = 'image' | 'mask' | 'video' | 'audio'

/** What was sent: the name of it, its content where that came inside the request, or a file that came with it. */
export type MediaInput = string | Uint8Array | { path: string; bytes: number }

/** Who sends something, and with what it is to go. */
export interface MediaSender {
  organizationId: string
  /** Of our own addresses, as the caller knows it: `https://infer.example`. */
  origin: string
  /** The job that it is an input of. */
  jobId?: string
  signal?: AbortSignal
}

interface MediaOptions {
  config: Pick<Config, 'allowed_hosts' | 'limits' | 'media' | 'public_url'>
  store: { files: Pick<Store['files'], 'find'>; stats: () => Pick<ReturnType<Store['stats']>, 'writable'> }
  files: Files
  cpu: Pick<Cpu, 'redraw' | 'sound'>
  ffmpeg: Pick<Ffmpeg, 'found' | 'probe' | 'required' | 'sound'>
  log: Log
  /** How names are resolved; the system's way when absent. */
  resolve?: Resolve
}

/** What a picture may be that is sent in; engines never see its own file. */
export const imageRules = {
  formats: ['jpeg', 'png'],
  maxBytes: 10 << 20,
  maxPixels: 40_000_000,
  maxSide: 8192,
} as const

const names: Record<MediaKind, string> = { image: 'picture', mask: 'mask', video: 'video', audio: 'sound' }
const codes: Record<MediaKind, FailureCode> = {
  image: 'invalid_image',
  mask: 'invalid_image',
  video: 'invalid_video',
  audio: 'invalid_audio',
}
/** What belongs to a job is kept as long as the job; until there is one, this long. */
const unclaimedMs = 3_600_000

/**
 * Turns what a caller names into a file of the organization's own, checked by its content: an http(s) address, a data:
 * URL, the id of a file, or the address of a file that we signed, which is read from the disk. It is a new file always,
 * so that it lives as long as the job that it is an input of, whatever becomes of the first.
 */
export function openMedia({ config, store, files, cpu, ffmpeg, log, resolve }: MediaOptions) {
  const fetcher = openFetcher({ media: config.media, log, ...(resolve ? { resolve } : {}) })
  // What is under way is held in memory: so much for an organization, so much for all.
  const full = 'Too many pictures, videos and sounds are being taken at once. Try again in a moment.'
  const ofOrganization = openSemaphore({ permits: 4, maxWaiting: 256, full })
  const ofAll = openSemaphore({ permits: 32, maxWaiting: 4096, full })
  const most: Record<MediaKind, number> = {
    image: imageRules.maxBytes,
    mask: imageRules.maxBytes,
    video: config.limits.upload_size,
    audio: config.limits.audio_size,
  }
  const sounds = openAudioDecoder({ ffmpeg, cpu, limits: config.limits })

  /** Throws Failure `not_found` for a file of another organization like for none at all. */
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
    // Who has a signed address may read the file, whoever's it is.
    const file = files.verify(source.id, source.exp, source.sig) ? await store.files.find(source.id) : undefined
    const there = file && (await files.find(file.organizationId, file.id))
    if (there) return there
    throw new Failure('url_fetch_failed', fetchRefusal)
  }

  const tooLarge = (field: string, kind: MediaKind) =>
    new Failure(codes[kind], `'${field}' is larger than ${megabytes(most[kind])}.`)

  /** What is not a file of ours yet, handed over piece by piece. */
  async function receiveMedia(
    { organizationId, signal }: MediaSender,
    field: string,
    source: Extract<Source, { from: 'http' | 'data' | 'bytes' }>,
    kind: MediaKind,
    taken: (piece: Uint8Array) => unknown,
  ): Promise<void> {
    if (source.from === 'bytes') {
      if (source.content.byteLength > most[kind]) throw tooLarge(field, kind)
      await taken(source.content)
      return
    }
    if (source.from === 'data') {
      if (source.bytes > most[kind]) throw tooLarge(field, kind)
      await taken(bytesOfDataUrl(source.text, field))
      return
    }
    try {
      const options = { organizationId, url: source.url, maxBytes: most[kind], ...(signal ? { signal } : {}) }
      await fetcher.fetch(options, taken)
    } catch (thrown) {
      throw thrown instanceof TooLarge ? tooLarge(field, kind) : thrown
    }
  }

  async function bytesOf(sender: MediaSender, field: string, source: Source, kind: 'image' | 'mask'): Promise<Buffer> {
    if (source.from === 'path') {
      if (source.bytes > most[kind]) throw tooLarge(field, kind)
      return readFile(source.path)
    }
    if (source.from !== 'file' && source.from !== 'link') {
      const pieces: Uint8Array[] = []
      await receiveMedia(sender, field, source, kind, piece => pieces.push(piece))
      // Whole, it is passed on as it is: a copy of megabytes is felt by everybody.
      const [only] = pieces
      return only && pieces.length === 1
        ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
        : Buffer.concat(pieces)
    }
    const file = await stored(sender, field, source)
    if (file.bytes > most[kind]) throw tooLarge(field, kind)
    await using handle = await files.open(file)
    if (!handle) throw gone(field)
    return await handle.readFile()
  }

  const factsFor = (sender: MediaSender): Pick<FileFacts, 'purpose' | 'jobId' | 'expiresAt'> => ({
    purpose: 'input',
    jobId: sender.jobId ?? null,
    expiresAt: Date.now() + unclaimedMs,
  })

  async function takeImage(sender: MediaSender, field: string, source: Source, kind: 'image' | 'mask', alpha: boolean) {
    const sent = await bytesOf(sender, field, source, kind)
    const as = kind === 'mask' && alpha ? 'alpha mask' : kind
    const { bytes, format, width, height } = await cpu.redraw(sent, imageRules, as, { give: true })
    sender.signal?.throwIfAborted()
    const facts = { ...factsFor(sender), name: `${kind}.${format === 'jpeg' ? 'jpg' : format}`, width, height }
    return files.keep(sender.organizationId, bytes, { ...facts, contentType: `image/${format}` })
  }

  /** Where the bytes of a recording lie: a file of ours, or what is brought into the folder. */
  async function pathOf(sender: MediaSender, field: string, source: Source, kind: 'video' | 'audio', folder: string) {
    if (source.from === 'path') {
      if (source.bytes > most[kind]) throw tooLarge(field, kind)
      return source.path
    }
    if (source.from === 'file' || source.from === 'link') {
      const file = await stored(sender, field, source)
      if (file.bytes > most[kind]) throw tooLarge(field, kind)
      return files.pathOf(file)
    }
    const path = join(folder, 'sent')
    await using handle = await open(path, 'wx', 0o600)
    await receiveMedia(sender, field, source, kind, piece => handle.writeFile(piece).catch(unwritten))
    return path
  }

  async function takeRecording(sender: MediaSender, field: string, source: Source, kind: 'video' | 'audio') {
    if (kind === 'video') await ffmpeg.required()
    await using workspace = await files.workspace(sender.jobId ?? newId('job'))
    const path = await pathOf(sender, field, source, kind, workspace.folder)
    const { contentType, ending, ...measured } =
      kind === 'video'
        ? await videoFacts(path, sender)
        : await sounds.examine(path, join(workspace.folder, 'decoded'), sender.signal)
    const facts = { ...factsFor(sender), name: `${kind}.${ending}`, contentType, ...measured }
    return await files.receive(sender.organizationId, createReadStream(path), { ...facts, maxBytes: most[kind] })
  }

  async function videoFacts(path: string, { signal }: MediaSender) {
    const probe = await ffmpeg.probe(path, signal)
    const { width, height, durationMs } = probe
    return { ...checkProbe(probe, 'video'), width, height, durationMs }
  }

  async function decodedSound(sender: MediaSender, field: string, source: Source): Promise<DecodedAudio> {
    const { writable } = store.stats()
    if (writable !== true) throw new Failure('disk_full', writable)
    const workspace = await files.workspace(sender.jobId ?? newId('job'))
    try {
      const path = await pathOf(sender, field, source, 'audio', workspace.folder)
      // A job has its slot already.
      if (sender.jobId === undefined) sounds.admit()
      const decoded = await sounds.decode(path, join(workspace.folder, 'decoded'), sender.signal)
      const release = sounds.keep(decoded.bytes)
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

  /** In its turn, and whatever is wrong said of the field. */
  async function inTurn<T>(sender: MediaSender, field: string, kind: MediaKind, work: () => Promise<T>): Promise<T> {
    const { organizationId, signal } = sender
    try {
      signal?.throwIfAborted()
      return await ofOrganization.run(organizationId, signal, () => ofAll.run('', signal, work))
    } catch (thrown) {
      signal?.throwIfAborted()
      if (!(thrown instanceof Failure) || thrown.status >= 500) throw thrown
      throw about(thrown, field, kind)
    }
  }

  return {
    /**
     * A picture as a data: URL, for an engine that takes it inside its request; nothing of it is kept. `value` is as in
     * `take`, and so is what it rejects with.
     */
    picture: (sender: MediaSender, field: string, value: string): Promise<string> =>
      inTurn(sender, field, 'image', async () => {
        const sent = await bytesOf(sender, field, sourceOf(sender, field, value), 'image')
        const { bytes, format } = await cpu.redraw(sent, imageRules, 'image', { give: true })
        return `data:image/${format};base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')}`
      }),

    /**
     * A sound as engines are sent it; nothing of it is kept once it is disposed of. `value` is as in `take`, and so is what
     * it rejects with.
     */
    sound: (sender: MediaSender, field: string, value: MediaInput): Promise<DecodedAudio> =>
      inTurn(sender, field, 'audio', async () => decodedSound(sender, field, sourceOf(sender, field, value))),

    /**
     * With `alpha` what is transparent in a mask is meant, and the file is white there.
     * Rejects with Failure `invalid_value` (neither address nor file), `url_fetch_failed`, `not_found`, `invalid_image`,
     * `invalid_video`, `invalid_audio`, `unsupported_task` (ffmpeg is missing) with the field as `param`, `no_capacity`,
     * `disk_full`, or the reason of the sender's signal.
     */
    take: (
      sender: MediaSender,
      field: string,
      value: MediaInput,
      kind: MediaKind,
      { alpha = false }: { alpha?: boolean | undefined } = {},
    ): Promise<FileRecord> =>
      inTurn(sender, field, kind, async () => {
        const source = sourceOf(sender, field, value)
        return kind === 'image' || kind === 'mask'
          ? takeImage(sender, field, source, kind, alpha)
          : takeRecording(sender, field, source, kind)
      }),
  }
}
export type Media = ReturnType<typeof openMedia>

/** Told apart from what goes wrong with the address that it comes from. */
function unwritten(cause: NodeJS.ErrnoException): never {
  throw Failure.from(diskFailure(cause))
}

const gone = (field: string) =>
  new Failure('not_found', `'${field}' names a file whose content is gone. Send it again.`)

/** The failure as one of this input: what decodes it knows neither its field nor what it was meant as. */
function about({ code, message, cause }: Failure, field: string, kind: MediaKind): Failure {
  const ofContent = ['invalid_image', 'invalid_video', 'invalid_audio'].includes(code)
  const text = message.replace(/^The (picture|file|video|sound)\b/, () => `The ${names[kind]} in '${field}'`)
  return new Failure(ofContent ? codes[kind] : code, text, { param: field, cause })
}
