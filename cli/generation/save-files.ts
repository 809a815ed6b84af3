import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { Client } from '../client/client.ts'
import type { JobFile, ResultFiles } from '../jobs/job.ts'
import { CommandFailure, exitCodes, usageFailure } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { extensionFor, nameFor, numbered, numberedPaths, type OutputTarget } from './output-target.ts'

interface SaveOptions {
  signal: AbortSignal
  /** Text from which the default file name is made. */
  topic: string
  suffix: string
  /** Called when a download failed and is repeated. */
  onTrouble: (sentence: string) => void
}

/** Pauses between attempts of one download. Milliseconds. */
const pausesMs = [1_000, 2_000, 4_000, 8_000] as const

/**
 * Saves the files of a job or an execution, and resolves with the absolute paths (none for standard output). A file is written
 * completely or not at all. Throws Failure when the files have expired (`output_expired`), the job made none, or the
 * disk fails.
 */
export async function saveFiles(
  { id, files, seed }: Pick<ResultFiles, 'files' | 'seed'> & { id: string },
  target: OutputTarget,
  connect: () => Client,
  terminal: Terminal,
  saving: SaveOptions,
): Promise<string[]> {
  if (files.length === 0) throw new Failure('worker_error', `The job ${id} has ended without a file.`)
  if (target.kind === 'stdout') {
    if (files.length > 1)
      throw usageFailure(`There are ${files.length} files; standard output takes one. Use --out folder/.`)
    await withRetries(saving, () => writeToStdout(connect(), files[0]!, terminal, saving.signal))
    return []
  }
  const names = target.kind === 'file' ? numberedPaths(target.path, files.length) : undefined
  const folder = target.kind === 'file' ? dirname(target.path) : target.path
  try {
    mkdirSync(folder, { recursive: true })
    const saved: string[] = []
    for (const [at, file] of files.entries()) {
      const extension = extensionFor(file.content_type, file.file_name)
      const path = await saveWhole(
        folder,
        temporary => withRetries(saving, () => download(connect(), file, temporary, saving.signal)),
        () => names?.[at] ?? reserve(folder, nameFor(saving.topic, seed, saving.suffix), extension),
      )
      saved.push(path)
    }
    return saved
  } catch (thrown) {
    // The files stay on the server.
    const again = `infer ${id.startsWith('exec_') ? 'execution' : 'job'} watch ${id} --out folder/`
    throw diskFailure(thrown, `Files cannot be saved in ${resolve(folder)}`, `Save them elsewhere: ${again}`)
  }
}

/**
 * Writes a file and gives it its name at the end. Resolves with the absolute path. `write` must settle after the file is
 * closed: a file that a stream opens after its pipeline failed would stay.
 */
async function saveWhole(
  folder: string,
  write: (temporary: string) => Promise<void>,
  place: () => string,
): Promise<string> {
  const temporary = join(folder, `.infer-${randomBytes(6).toString('hex')}.part`)
  try {
    await write(temporary)
    const path = place()
    renameSync(temporary, path)
    return resolve(path)
  } finally {
    rmSync(temporary, { force: true })
  }
}

/** Reserves the first unused name by creating an empty file, so that a concurrent process takes the next one. */
function reserve(folder: string, name: string, extension: string): string {
  for (let number = 1; ; number++) {
    const path = numbered(folder, name, extension, number)
    try {
      closeSync(openSync(path, 'wx'))
      return path
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown
    }
  }
}

/** Repeats the work when the connection was lost. */
async function withRetries(saving: SaveOptions, work: () => Promise<void>): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (thrown) {
      saving.signal.throwIfAborted()
      const pause = pausesMs[attempt]
      if (pause === undefined || !(thrown instanceof Failure) || !thrown.retryable) throw thrown
      saving.onTrouble(`Retrying. ${thrown.message}`)
      await sleep(pause, undefined, { signal: saving.signal })
    }
  }
}

async function download(client: Client, file: JobFile, to: string, signal: AbortSignal): Promise<void> {
  await using output = await open(to, 'w')
  await pipeline(client.bytes(file.url, signal), counted(file), output.createWriteStream({ flush: true }), { signal })
}

/** Writes a file to standard output and leaves it open. After a partial write no retry is possible. */
async function writeToStdout(client: Client, file: JobFile, terminal: Terminal, signal: AbortSignal): Promise<void> {
  let hasWritten = false
  try {
    for await (const piece of counted(file)(client.bytes(file.url, signal))) {
      hasWritten = true
      if (!terminal.stdout.write(piece)) await new Promise(drained => terminal.stdout.once('drain', drained))
    }
  } catch (thrown) {
    if (hasWritten && thrown instanceof Failure)
      throw new CommandFailure(
        exitCodes.failed,
        thrown.code === 'output_expired' ? 'output_expired' : 'internal_error',
        `${thrown.message} Standard output contains only a part of the file.`,
        { cause: thrown },
      )
    throw thrown
  }
}

/** Yields the bytes unchanged; throws when the total differs from the size that the server reported. */
const counted = ({ file_size, file_name }: JobFile) =>
  async function* (pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let size = 0
    for await (const piece of pieces) {
      size += piece.length
      yield piece
    }
    if (typeof file_size === 'number' && size !== file_size)
      throw new Failure('worker_error', `${file_name ?? 'The file'} arrived with ${size} of ${file_size} bytes.`)
  }

/** Why a file cannot be written, by system error code. */
const writeReasons: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota of this user is used up',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'it is read-only',
  ENOENT: 'there is no such folder',
  ENOTDIR: 'it is not a folder',
  EEXIST: 'it is not a folder',
}

/** Converts a disk error to a Failure; returns any other as it is. */
function diskFailure(thrown: unknown, what: string, instead: string): unknown {
  const { code, syscall, message } = thrown as NodeJS.ErrnoException
  if (typeof code !== 'string' || syscall === undefined || thrown instanceof Failure) return thrown
  const why = writeReasons[code] ?? message
  return new CommandFailure(exitCodes.io, 'internal_error', `${what}: ${why}. ${instead}`, { cause: thrown })
}

interface SaveStreamOptions {
  /** Text from which the default file name is made. */
  topic: string
  /** With its dot. */
  extension: string
  signal: AbortSignal
}

/**
 * Saves bytes while they arrive, and resolves with the absolute path; undefined for standard output. A file is written
 * completely or not at all.
 */
export async function saveStream(
  terminal: Terminal,
  bytes: AsyncIterable<Uint8Array>,
  target: OutputTarget,
  { topic, extension, signal }: SaveStreamOptions,
): Promise<string | undefined> {
  if (target.kind === 'stdout') {
    for await (const piece of bytes)
      if (!terminal.stdout.write(piece)) await new Promise(drained => terminal.stdout.once('drain', drained))
    return undefined
  }
  const folder = target.kind === 'file' ? dirname(target.path) : target.path
  try {
    mkdirSync(folder, { recursive: true })
    return await saveWhole(
      folder,
      async temporary => {
        await using output = await open(temporary, 'w')
        await pipeline(bytes, output.createWriteStream({ flush: true }), { signal })
      },
      () => (target.kind === 'file' ? target.path : reserve(folder, nameFor(topic, undefined), extension)),
    )
  } catch (thrown) {
    const what = `The file cannot be saved in ${resolve(folder)}`
    throw diskFailure(thrown, what, 'Choose another place with --out.')
  }
}
