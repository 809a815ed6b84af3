import { open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cpu } from '../../cpu/cpu.ts'
import { type ImageFormat, imageKindOf } from '../../cpu/image-kind.ts'
import type { ImageRules, WrittenFormat } from '../../cpu/image-work.ts'
import { Failure } from '../../failure.ts'
import type { Files } from '../../files/files.ts'
import { ulid } from '../../ids.ts'
import type { Log } from '../../log.ts'
import type { Ffmpeg } from '../../media/ffmpeg.ts'
import type { GenerationTask } from '../../schemas/task.ts'
import type { JobRecord, NewFile } from '../../store/store.ts'
import type { EngineFile, GenerationInputs } from '../protocols/generation-call.ts'
import { type Completed, workerError } from '../protocols/infer-generation.ts'
import { makesImages } from './prepare.ts'
import type { ResultFile } from './result.ts'

export interface OutputOwners {
  files: Pick<Files, 'adopt' | 'pathOf' | 'discard'>
  cpu: Pick<Cpu, 'image' | 'encode' | 'thumbnail'>
  ffmpeg: Pick<Ffmpeg, 'found' | 'probe' | 'frame' | 'toMp4'>
  log: Log
}

/** The validated output files of an engine, copied to the file store. Their database rows are not written yet. */
export interface Outputs {
  files: NewFile[]
  /** One for each image, or one for the video. */
  results: ResultFile[]
}

interface Run {
  job: JobRecord
  task: GenerationTask
  inputs: GenerationInputs
  /** Where the engine wrote. */
  folder: string
  /** A folder that the engine cannot access, for thumbnails. */
  ownFolder: string
  /** Maximum bytes of all output files of one job. */
  maxBytes: number
  /** Whether images in another format than the requested one are converted. Otherwise they are a fault of the engine. */
  converts?: boolean
}

/** Quality of converted JPEG and WebP images for which the request named none. */
const usualQuality = 95
/** Bytes by which the format of an image is detected. */
const headBytes = 64

const imageRules: Omit<ImageRules, 'formats'> = { maxBytes: 512 << 20, maxPixels: 64_000_000, maxSide: 16_384 }
const thumbnailSide = 320

/**
 * Stores the files that the engine named. Each file is first copied to where the engine cannot change it and then
 * validated by its content, so the stored bytes are the validated ones. Rejects with Failure `worker_error` that names
 * the fault; then no file is kept.
 */
export async function takeOutputs(run: Run, completed: Completed, owners: OutputOwners): Promise<Outputs> {
  const { job, task, inputs } = run
  const fault = (what: string) => workerError(job.modelId, what)
  checkNames(completed.files, task, inputs, fault)
  const kept: NewFile[] = []
  let remainingBytes = run.maxBytes

  async function adopt(path: string, contentType: string, as: 'output' | 'thumbnail', shownName: string) {
    const file = await owners.files.adopt(job.organizationId, path, {
      name: shownName,
      contentType,
      purpose: as,
      jobId: job.id,
      expiresAt: { keptMs: job.retentionMs },
      maxBytes: remainingBytes,
    })
    remainingBytes -= file.bytes
    kept.push(file)
    return file
  }

  /** Stores a thumbnail and returns its id. If that fails, the output is kept without a thumbnail. */
  async function thumbnail(draw: () => Promise<Uint8Array>): Promise<string | undefined> {
    try {
      const path = join(run.ownFolder, `thumbnail-${ulid()}.webp`)
      await writeFile(path, await draw(), { flag: 'wx' })
      return (await adopt(path, 'image/webp', 'thumbnail', 'thumbnail.webp')).id
    } catch (cause) {
      owners.log.warn('A thumbnail could not be created', { job: job.id }, cause)
      return undefined
    }
  }

  /** Writes the engine's image in another format into our own folder and returns its path. */
  async function converted(name: string, from: ImageFormat, format: WrittenFormat, quality: number): Promise<string> {
    const original = await adopt(join(run.folder, name), `image/${from}`, 'output', name)
    const written = await owners.cpu
      .encode(owners.files.pathOf(original), { ...imageRules, formats: [from] }, { format, quality })
      .catch(notAnImage(name, from))
    kept.splice(kept.indexOf(original), 1)
    await owners.files.discard([original])
    const path = join(run.ownFolder, `image-${ulid()}.${format}`)
    await writeFile(path, written, { flag: 'wx' })
    return path
  }

  const notAnImage = (name: string, format: ImageFormat) => (cause: unknown) => {
    if (!(cause instanceof Failure) || cause.code !== 'invalid_image') throw cause
    throw fault(`made '${name}', which is no ${format.toUpperCase()} image: ${cause.message}`)
  }

  async function image(name: string, at: number): Promise<ResultFile> {
    const format = inputs.output_format as WrittenFormat
    const ending = format === 'jpeg' ? 'jpg' : format
    const quality = inputs.output_compression
    const written = quality === undefined ? format : 'png'
    const from = run.converts ? await formatOf(join(run.folder, name), written) : written
    const made =
      quality === undefined && from === format
        ? join(run.folder, name)
        : await converted(name, from, format, quality ?? usualQuality)
    const file = await adopt(made, `image/${format}`, 'output', `image${at === 0 ? '' : `-${at + 1}`}.${ending}`)
    const path = owners.files.pathOf(file)
    const facts = await owners.cpu.image(path, { ...imageRules, formats: [format] }).catch(notAnImage(name, format))
    Object.assign(file, { width: facts.width, height: facts.height })
    const thumbnailId = await thumbnail(() => owners.cpu.thumbnail(path, thumbnailSide))
    return resultFileOf(file, thumbnailId)
  }

  /** Writes the engine's video in another format as MP4 into our own folder and returns its path. */
  async function asMp4(name: string): Promise<string> {
    const original = await adopt(join(run.folder, name), 'video/x-msvideo', 'output', name)
    const path = join(run.ownFolder, `video-${ulid()}.mp4`)
    await owners.ffmpeg.toMp4(owners.files.pathOf(original), path, run.maxBytes).catch((cause: unknown) => {
      if (!(cause instanceof Failure) || cause.code !== 'invalid_video') throw cause
      throw fault(`made '${name}', which is no video: ${cause.message}`)
    })
    kept.splice(kept.indexOf(original), 1)
    remainingBytes += original.bytes
    await owners.files.discard([original])
    return path
  }

  async function video(name: string): Promise<ResultFile> {
    const made = /\.(avi|webm)$/.test(name) ? await asMp4(name) : join(run.folder, name)
    const file = await adopt(made, 'video/mp4', 'output', 'video.mp4')
    const path = owners.files.pathOf(file)
    const found = await owners.ffmpeg.found()
    if ('missing' in found) {
      if (!(await isMp4(path))) throw fault(`made '${name}', which is no MP4 video`)
      const durationMs = Math.round((1000 * inputs.num_frames) / inputs.fps)
      Object.assign(file, { width: inputs.width, height: inputs.height, durationMs })
      return { ...resultFileOf(file), fps: inputs.fps, num_frames: inputs.num_frames, figures: 'requested' }
    }
    const facts = await owners.ffmpeg.probe(path).catch((cause: unknown) => {
      throw fault(`made '${name}', which is no MP4 video: ${Failure.from(cause).message}`)
    })
    if (facts.kind !== 'video' || !facts.width || !facts.height || !(await isMp4(path)))
      throw fault(`made '${name}', which is no MP4 video but ${facts.kind === 'video' ? 'another kind' : facts.kind}`)
    Object.assign(file, { width: facts.width, height: facts.height, durationMs: facts.durationMs })
    const thumbnailId = await thumbnail(async () =>
      owners.cpu.thumbnail(await owners.ffmpeg.frame(path), thumbnailSide),
    )
    const fps = facts.fps ?? inputs.fps
    return { ...resultFileOf(file, thumbnailId), fps, num_frames: facts.frames ?? inputs.num_frames }
  }

  try {
    const results: ResultFile[] = []
    for (const [at, { name }] of completed.files.entries())
      results.push(await (makesImages(task) ? image(name, at) : video(name)))
    return { files: kept, results }
  } catch (thrown) {
    await owners.files.discard(kept)
    throw thrown
  }
}

/** Throws unless the engine named files of the requested number and kind, with names that can only be in its folder. */
function checkNames(
  files: readonly EngineFile[],
  task: GenerationTask,
  { num_images }: GenerationInputs,
  fault: (what: string) => Failure,
): void {
  const kind = makesImages(task) ? 'image' : 'video'
  const strange = files.find(({ name }) => !/^[A-Za-z0-9][\w.-]*$/.test(name))
  if (strange) throw fault(`named ${JSON.stringify(strange.name)}, which is not the plain name of a file in its folder`)
  const other = files.find(file => file.kind !== kind)
  if (other) throw fault(`made '${other.name}', of kind ${other.kind} instead of ${kind}`)
  if (new Set(files.map(({ name }) => name)).size < files.length) throw fault('named one file twice')
  if (files.length !== num_images) throw fault(`made ${files.length} files instead of ${num_images}`)
}

/** Detects the format of an image file; `expected` if it is none of those that can be converted. */
async function formatOf(path: string, expected: ImageFormat): Promise<ImageFormat> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(headBytes), 0, headBytes, 0)
    const kind = imageKindOf(buffer.subarray(0, bytesRead))
    return 'format' in kind ? kind.format : expected
  } finally {
    await file.close()
  }
}

/** Whether the file begins with a box of type `ftyp`, as MP4 files do. */
async function isMp4(path: string): Promise<boolean> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(12), 0, 12, 0)
    return bytesRead === 12 && buffer.toString('latin1', 4, 8) === 'ftyp'
  } finally {
    await file.close()
  }
}

const resultFileOf = (file: NewFile, thumbnailId?: string): ResultFile => ({
  file_id: file.id,
  file_name: file.name,
  content_type: file.contentType,
  file_size: file.bytes,
  width: file.width ?? undefined,
  height: file.height ?? undefined,
  duration: file.durationMs === null ? undefined : file.durationMs / 1000,
  thumbnail_id: thumbnailId,
})
