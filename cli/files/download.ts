import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { CommandFailure, exitCodes, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { FileClient } from './file-client.ts'

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
  client: FileClient,
  id: string,
  { out, force, terminal, signal }: DownloadOptions,
): Promise<string | undefined> {
  const content = client.content(id, signal)
  if (out === '-') {
    await pipeline(content, terminal.stdout, { end: false })
    return undefined
  }
  const file = await client.find(id)
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
