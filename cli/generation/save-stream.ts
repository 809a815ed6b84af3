import { randomBytes } from 'node:crypto'
import { createWriteStream, mkdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Failure } from '../../core/failure.ts'
import { CommandFailure, exitCodes } from '../terminal/exit-codes.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { nameFor, type OutputTarget } from './output-target.ts'
import { reserve, writeReasons } from './save-files.ts'

export interface SaveStreamOptions {
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
  const temporary = join(folder, `.infer-${randomBytes(6).toString('hex')}.part`)
  try {
    mkdirSync(folder, { recursive: true })
    await pipeline(bytes, createWriteStream(temporary, { flush: true }), { signal })
    const path = target.kind === 'file' ? target.path : reserve(folder, nameFor(topic, undefined), extension)
    renameSync(temporary, path)
    return resolve(path)
  } catch (thrown) {
    const { code, syscall } = thrown as NodeJS.ErrnoException
    if (typeof code !== 'string' || syscall === undefined || thrown instanceof Failure) throw thrown
    const why = writeReasons[code] ?? (thrown as Error).message
    throw new CommandFailure(
      exitCodes.io,
      'internal_error',
      `The file cannot be saved in ${resolve(folder)}: ${why}. Choose another place with --out.`,
      { cause: thrown },
    )
  } finally {
    rmSync(temporary, { force: true })
  }
}
