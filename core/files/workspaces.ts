import { constants } from 'node:fs'
import { chmod, mkdir, mkdtemp, open, opendir, realpath, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Failure } from '../failure.ts'
import { isId } from '../ids.ts'
import type { Log } from '../log.ts'

/** A folder of one run of a job, gone when it is disposed of. */
export interface Workspace extends AsyncDisposable {
  /** Absolute. */
  folder: string
  /** It is to go only so many milliseconds after it was disposed of: an engine may not have heard yet that it is over. */
  linger(ms: number): void
}

const untrue = (name: string, why: string) =>
  new Failure('worker_error', `The engine says that it made the file '${name.slice(0, 64)}', but ${why}.`)

/** Engines write here; nothing of it outlives the run or the server. Opening it removes what an earlier one left. */
export async function openWorkspaces(parent: string, log: Log) {
  await mkdir(parent, { recursive: true, mode: 0o700 })
  for await (const { name } of await opendir(parent)) await clear(join(parent, name), log)
  const root = await realpath(parent)

  async function make(jobId: string): Promise<Workspace> {
    if (!isId(jobId)) throw new Error('a workspace is of a job')
    const folder = await mkdtemp(join(root, `${jobId}-`))
    let lingerMs = 0
    return {
      folder,
      linger(ms) {
        lingerMs = ms
      },
      // What a stop of the server leaves is removed at the next start.
      async [Symbol.asyncDispose]() {
        if (lingerMs > 0) setTimeout(() => void clear(folder, log), lingerMs).unref()
        else await clear(folder, log)
      },
    }
  }

  return {
    make,
    /**
     * Opens what an engine says that it made: a regular file with one name, directly in a workspace, of at most `most`
     * bytes. No link is followed and nothing that is not a file is waited for. Throws Failure `worker_error`.
     */
    async open(path: string, most: number) {
      const folder = dirname(path)
      const name = basename(path)
      if (
        dirname(folder) !== root ||
        join(folder, name) !== path ||
        (await realpath(folder).catch(() => '')) !== folder
      )
        throw untrue(name, 'it does not lie in the folder of its job')
      const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
        (cause: NodeJS.ErrnoException) => {
          throw untrue(name, cause.code === 'ELOOP' ? 'it is a link' : 'it cannot be read')
        },
      )
      try {
        const facts = await file.stat()
        if (!facts.isFile()) throw untrue(name, 'it is no regular file')
        if (facts.nlink !== 1) throw untrue(name, 'it is a file that has other names too')
        if (facts.size === 0) throw untrue(name, 'it is empty')
        if (facts.size > most) throw untrue(name, `it is larger than ${most} bytes, the most that a job may make`)
        return file
      } catch (thrown) {
        await file.close()
        throw thrown
      }
    },
  }
}

/** Removes a folder whatever its modes are: an engine may have locked itself out. Never rejects. */
async function clear(path: string, log: Log): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true }).catch(async () => {
      await unlock(path)
      await rm(path, { recursive: true, force: true })
    })
  } catch (cause) {
    log.warn('A folder of a job could not be removed', { folder: path }, cause)
  }
}

async function unlock(folder: string): Promise<void> {
  await chmod(folder, 0o700)
  for await (const entry of await opendir(folder)) if (entry.isDirectory()) await unlock(join(folder, entry.name))
}
