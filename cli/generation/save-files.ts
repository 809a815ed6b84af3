import { randomBytes } from 'node:crypto'
import { closeSync, createWriteStream, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { Client } from '../client.ts'
import { CommandFailure, exitCodes, usage } from '../exit-codes.ts'
import { filesOfJob, type Job, type JobFile } from '../jobs/job.ts'
import type { Terminal } from '../terminal.ts'
import { extensionFor, nameFor, numbered, numberedPaths, type OutputTarget } from './output-target.ts'

export interface Saving {
  signal: AbortSignal
  /** What the file is named after, where nobody named it. */
  topic: string
  suffix: string
  /** Said when a download broke and is begun again. */
  onTrouble: (sentence: string) => void
}

/** Between tries of one download. Milliseconds. */
const pausesMs = [1_000, 2_000, 4_000, 8_000] as const

/**
 * Saves what a job made, and resolves with the absolute paths, none for standard output. A file is there whole or not
 * at all. Throws Failure when it is over with the files (`output_expired`), the job made none, or the disk refuses.
 */
export async function saveFiles(
  job: Job,
  place: OutputTarget,
  connect: () => Client,
  terminal: Terminal,
  saving: Saving,
): Promise<string[]> {
  const { files, seed } = filesOfJob(job)
  if (files.length === 0) throw new Failure('worker_error', `The job ${job.id} has ended, and made no file.`)
  if (place.kind === 'stdout') {
    if (files.length > 1) throw usage(`There are ${files.length} files; standard output takes one. Use --out folder/.`)
    await again(saving, () => writeOut(connect(), files[0]!, terminal, saving.signal))
    return []
  }
  const names = place.kind === 'file' ? numberedPaths(place.path, files.length) : undefined
  const folder = place.kind === 'file' ? dirname(place.path) : place.path
  try {
    mkdirSync(folder, { recursive: true })
    return await saveIn(folder, files, seed, names, connect, saving)
  } catch (thrown) {
    throw diskFailure(thrown, folder, job.id)
  }
}

async function saveIn(
  folder: string,
  files: readonly JobFile[],
  seed: number | undefined,
  names: readonly string[] | undefined,
  connect: () => Client,
  saving: Saving,
): Promise<string[]> {
  const saved: string[] = []
  for (const [at, file] of files.entries()) {
    const temporary = join(folder, `.infer-${randomBytes(6).toString('hex')}.part`)
    try {
      await again(saving, () => download(connect(), file, temporary, saving.signal))
      const extension = extensionFor(file.content_type ?? undefined, file.file_name ?? undefined)
      const path = names ? names[at]! : reserve(folder, nameFor(saving.topic, seed, saving.suffix), extension)
      renameSync(temporary, path)
      saved.push(resolve(path))
    } finally {
      rmSync(temporary, { force: true })
    }
  }
  return saved
}

/** Takes the first name that is free, by an empty file of it: whoever comes at the same time takes the next. */
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

/** Does it again when the connection broke. */
async function again(saving: Saving, work: () => Promise<void>): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (thrown) {
      saving.signal.throwIfAborted()
      const pause = pausesMs[attempt]
      if (pause === undefined || !(thrown instanceof Failure) || !thrown.retryable) throw thrown
      saving.onTrouble(`Trying again. ${thrown.message}`)
      await sleep(pause, undefined, { signal: saving.signal })
    }
  }
}

async function download(client: Client, file: JobFile, to: string, signal: AbortSignal): Promise<void> {
  const output = createWriteStream(to, { flags: 'w', flush: true })
  await pipeline(client.bytes(file.url, signal), counted(file), output, { signal })
}

/** Standard output stays open: others write to it too. What was written cannot be taken back. */
async function writeOut(client: Client, file: JobFile, terminal: Terminal, signal: AbortSignal): Promise<void> {
  let begun = false
  try {
    for await (const piece of counted(file)(client.bytes(file.url, signal))) {
      begun = true
      if (!terminal.stdout.write(piece)) await new Promise(drained => terminal.stdout.once('drain', drained))
    }
  } catch (thrown) {
    if (begun && thrown instanceof Failure)
      throw new CommandFailure(
        exitCodes.failed,
        thrown.code === 'output_expired' ? 'output_expired' : 'internal_error',
        `${thrown.message} Standard output holds a part of the file.`,
        { cause: thrown },
      )
    throw thrown
  }
}

/** Passes pieces on; throws when they are not as many as the server said. */
const counted = ({ file_size, file_name }: JobFile) =>
  async function* (pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let size = 0
    for await (const piece of pieces) {
      size += piece.length
      yield piece
    }
    if (typeof file_size === 'number' && size !== file_size)
      throw new Failure('worker_error', `${file_name ?? 'The file'} came as ${size} of ${file_size} bytes.`)
  }

/** What keeps a folder from taking files, where the system has a code for it. */
const reasons: Record<string, string> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'this user may not store any more',
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'it can only be read',
  ENOENT: 'there is no such folder',
  ENOTDIR: 'it is no folder',
  EEXIST: 'it is no folder',
}

/** What the disk of this machine refuses; the work is done and stays on the server, so it says how to have it. */
function diskFailure(thrown: unknown, folder: string, id: string): unknown {
  const { code, syscall } = thrown as NodeJS.ErrnoException
  if (typeof code !== 'string' || syscall === undefined || thrown instanceof Failure) return thrown
  const why = reasons[code] ?? (thrown as Error).message
  const what = id.startsWith('exec_') ? 'execution' : 'job'
  return new CommandFailure(
    exitCodes.io,
    'internal_error',
    `Nothing can be saved in ${resolve(folder)}: ${why}. Save it elsewhere: infer ${what} watch ${id} --out folder/`,
    { cause: thrown },
  )
}
