import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cpu } from '../cpu/cpu.ts'
import { Failure, invalidValue } from '../failure.ts'
import type { FileFacts } from '../files/file-path.ts'
import type { Files } from '../files/files.ts'
import { newId } from '../ids.ts'
import type { FileRecord, Store } from '../store/store.ts'
import { type DecodedAudio, openAudioDecoder } from './audio-decoder.ts'
import { base64InPieces } from './base64-pieces.ts'
import type { Ffmpeg } from './ffmpeg.ts'
import {
  type FetchedKind,
  failureOfField,
  imageRules,
  type MediaInput,
  type MediaKind,
  type MediaSender,
  type TakeOptions,
} from './media-input.ts'
import { type MediaReaderOptions, openMediaReader, type SentMedia } from './media-reader.ts'
import { checkProbe } from './probe.ts'
import { openSemaphore } from './semaphore.ts'
import { storedText } from './text-content.ts'

interface MediaOptions extends MediaReaderOptions {
  store: MediaReaderOptions['store'] & { stats: () => Pick<ReturnType<Store['stats']>, 'writable'> }
  files: Files
  cpu: Pick<Cpu, 'bytesOfBase64' | 'reencode' | 'imageDataUrl' | 'decodeAudio'>
  ffmpeg: Pick<Ffmpeg, 'found' | 'probe' | 'required' | 'decodeAudio'>
}

/** How long a file is kept until its job is created. After that it is kept as long as the job. */
const unclaimedMs = 3_600_000

/**
 * Turns media of a request into a file of the organization, checked by its content. A caller can send an http(s) URL, a
 * data: URL, the id of a file, or a signed URL of this server, whose file is read from the disk. The result is always a new
 * file, so that it is kept as long as its job even if the original is removed.
 */
export function openMedia({ cpu, ffmpeg, ...owners }: MediaOptions) {
  const { config, store, files } = owners
  const reader = openMediaReader({ ...owners, cpu })
  // Media in progress are held in memory, so their number is limited for each organization and in all.
  const full = 'Too many images, videos and audio files are being processed at once. Try again in a few seconds.'
  const ofOrganization = openSemaphore({ permits: 4, maxWaiting: 256, full })
  const ofAll = openSemaphore({ permits: 32, maxWaiting: 4096, full })
  const audioDecoder = openAudioDecoder({ ffmpeg, cpu, limits: config.limits })

  const factsFor = (sender: MediaSender): Pick<FileFacts, 'purpose' | 'jobId' | 'expiresAt'> => ({
    purpose: 'input',
    jobId: sender.jobId ?? null,
    expiresAt: { keptMs: unclaimedMs },
  })

  async function takeImage(sent: SentMedia, { alpha }: TakeOptions) {
    const { sender } = sent
    const kind = sent.kind === 'mask' ? 'mask' : 'image'
    const as = kind === 'mask' && alpha ? 'alpha mask' : kind
    const image = await reader.bytesOf(sent)
    const { bytes, format, width, height } = await cpu.reencode(image, imageRules, as, { give: true })
    sender.signal?.throwIfAborted()
    const facts = { ...factsFor(sender), name: `${kind}.${format === 'jpeg' ? 'jpg' : format}`, width, height }
    return files.keep(sender.organizationId, bytes, { ...facts, contentType: `image/${format}` })
  }

  async function takeRecording(sent: SentMedia) {
    const { sender, kind } = sent
    if (kind === 'video') await ffmpeg.required()
    await using workspace = await files.workspace(sender.jobId ?? newId('job'))
    const path = await reader.pathOf(sent, workspace.folder)
    const { contentType, ending, ...measured } =
      kind === 'video'
        ? await videoFacts(path, sender)
        : await audioDecoder.examine(path, join(workspace.folder, 'decoded'), sender.signal)
    const facts = { ...factsFor(sender), name: `${kind}.${ending}`, contentType, ...measured }
    const maxBytes = reader.maxBytes[kind]
    return await files.receive(sender.organizationId, createReadStream(path), { ...facts, maxBytes })
  }

  async function videoFacts(path: string, { signal }: MediaSender) {
    const probe = await ffmpeg.probe(path, signal)
    const { width, height, durationMs } = probe
    return { ...checkProbe(probe, 'video'), width, height, durationMs }
  }

  async function decodeAudio(sent: SentMedia): Promise<DecodedAudio> {
    const { jobId, signal } = sent.sender
    const { writable } = store.stats()
    if (writable !== true) throw new Failure('disk_full', writable)
    const workspace = await files.workspace(jobId ?? newId('job'))
    try {
      const path = await reader.pathOf(sent, workspace.folder)
      // A job is never refused here, because it has its slot already.
      if (jobId === undefined) audioDecoder.admit()
      const decoded = await audioDecoder.decode(path, join(workspace.folder, 'decoded'), signal)
      const release = audioDecoder.keep(decoded.bytes)
      const dispose = () => Promise.resolve(workspace[Symbol.asyncDispose]()).finally(release)
      return { ...decoded, [Symbol.asyncDispose]: dispose }
    } catch (thrown) {
      await workspace[Symbol.asyncDispose]()
      throw thrown
    }
  }

  /** Waits for a permit, runs the work, and turns its failures into failures of the field. */
  async function withPermit<T>(
    sender: MediaSender,
    field: string,
    value: MediaInput,
    kind: FetchedKind,
    work: (sent: SentMedia) => Promise<T>,
  ): Promise<T> {
    const { organizationId, signal } = sender
    const begin = async () => work({ sender, field, source: reader.sourceOf(sender, field, value), kind })
    try {
      signal?.throwIfAborted()
      return await ofOrganization.run(organizationId, signal, () => ofAll.run('', signal, begin))
    } catch (thrown) {
      signal?.throwIfAborted()
      if (!(thrown instanceof Failure) || thrown.status >= 500) throw thrown
      throw failureOfField(thrown, field, kind)
    }
  }

  return {
    /**
     * Resolves with an image as a data: URL in ASCII, for an engine that gets it inside its request. Nothing is stored.
     * `value` and errors are as in `take`.
     */
    imageDataUrl: (sender: MediaSender, field: string, value: string | Uint8Array): Promise<Uint8Array> =>
      withPermit(sender, field, value, 'image', async sent => cpu.imageDataUrl(await reader.bytesOf(sent), imageRules)),

    /** Resolves with the text of a stored file, with its name. Errors are as in `take`. */
    fileText: (sender: MediaSender, field: string, id: string): Promise<string> =>
      withPermit(sender, field, id, 'file', async sent => {
        const file = sent.source.from === 'file' ? await reader.stored(sent) : undefined
        if (!file) throw invalidValue(`'${field}' must be the id of a file (file-…).`)
        return storedText(file, field, files)
      }),

    /** Resolves with the base64 of a stored audio file, in ASCII. Errors are as in `take`. */
    audioBase64: (sender: MediaSender, field: string, id: string): Promise<Uint8Array> =>
      withPermit(sender, field, id, 'audio', async sent => base64InPieces(await reader.bytesOf(sent))),

    /**
     * Resolves with the path of a file of any kind: of a stored one, or of a new one in the folder. `value` and errors are
     * as in `take`.
     */
    download: (sender: MediaSender, field: string, value: string, folder: string): Promise<string> =>
      withPermit(sender, field, value, 'file', sent => reader.pathOf(sent, folder)),

    /**
     * Resolves with the samples of audio of at most `maxSeconds`, in the form that engines get. Nothing is stored.
     * `value` and errors are as in `take`.
     */
    samples: (sender: MediaSender, field: string, value: MediaInput, maxSeconds: number): Promise<Buffer> =>
      withPermit(sender, field, value, 'audio', async sent => {
        await using sound = await decodeAudio(sent)
        if (sound.seconds > maxSeconds)
          throw new Failure('invalid_audio', `The audio lasts longer than ${maxSeconds} s, the maximum.`)
        return (await readFile(sound.path)).subarray(0, sound.bytes)
      }),

    /**
     * Resolves with decoded audio in the form that engines get. Disposing of it deletes the file. `value` and errors are as
     * in `take`.
     */
    decodeAudio: (sender: MediaSender, field: string, value: MediaInput): Promise<DecodedAudio> =>
      withPermit(sender, field, value, 'audio', decodeAudio),

    /** Whether a stored audio file is silent, so that its transcription needs no engine. Errors are as in `take`. */
    isSilent: (sender: MediaSender, field: string, id: string): Promise<boolean> =>
      withPermit(sender, field, id, 'audio', async sent => {
        await using workspace = await files.workspace(sender.jobId ?? newId('job'))
        const path = await reader.pathOf(sent, workspace.folder)
        return await audioDecoder.isSilent(path, workspace.folder, sender.signal)
      }),

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
      withPermit(sender, field, value, kind, sent =>
        kind === 'image' || kind === 'mask' ? takeImage(sent, options) : takeRecording(sent),
      ),
  }
}
export type { MediaInput, MediaKind, MediaSender, TakeOptions } from './media-input.ts'
export type Media = ReturnType<typeof openMedia>
