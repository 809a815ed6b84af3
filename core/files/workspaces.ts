import { constants } from 'node:fs'
import { copyFile, link, mkdir, mkdtemp, open, opendir, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { Failure } from '../failure.ts'
import { isId } from '../ids.ts'
import type { Log } from '../log.ts'
import { engineFolders } from './engine-folders.ts'
import { removeTree } from './remove-tree.ts'

/** A folder of one run of a job, removed when it is disposed of. */
export interface Workspace extends AsyncDisposable {
  /** Absolute. */
  folder: string
  /** Keeps the folder for so many milliseconds after it was disposed of: an engine may still write to it. */
  linger(ms: number): void
}

/** A workspace that an engine can reach through its sandbox. */
export interface EngineWorkspace extends Workspace {
  /** Makes a stored file readable for the engine. Resolves with the path under which the engine finds it. */
  share(path: string): Promise<string>
}

const untrue = (name: string, why: string) =>
  new Failure('worker_error', `The engine says that it made the file '${name.slice(0, 64)}', but ${why}.`)

/** Engines write here; nothing of it outlives the run or the server. Opening it removes what an earlier one left. */
export async function openWorkspaces(parent: string, log: Log) {
  await mkdir(parent, { recursive: true, mode: 0o700 })
  for await (const { name } of await opendir(parent)) await clear(join(parent, name), log)
  const root = await realpath(parent)

  async function make(jobId: string): Promise<Workspace> {
    return disposable([await folderOf(root, jobId)])
  }

  /** A workspace for a job that this engine runs. */
  async function makeFor(jobId: string, engineId: string): Promise<EngineWorkspace> {
    const { inputs, outputs } = engineFolders(root, engineId)
    for (const folder of [inputs, outputs]) await mkdir(folder, { recursive: true, mode: 0o700 })
    const [folder, shared] = [await folderOf(outputs, jobId), await folderOf(inputs, jobId)]
    return {
      ...disposable([folder, shared]),
      async share(path) {
        const at = join(shared, basename(path))
        // A second name costs nothing, and the sandbox binds this folder read-only.
        await link(path, at).catch(() => copyFile(path, at, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE))
        return at
      },
    }
  }

  async function folderOf(within: string, jobId: string): Promise<string> {
    if (!isId(jobId)) throw new Error('a workspace is of a job')
    return await mkdtemp(join(within, `${jobId}-`))
  }

  function disposable(folders: readonly [string, ...string[]]): Workspace {
    let lingerMs = 0
    const clearAll = async () => {
      for (const folder of folders) await clear(folder, log)
    }
    return {
      folder: folders[0],
      linger(ms) {
        lingerMs = ms
      },
      // What a stop of the server leaves is removed at the next start.
      async [Symbol.asyncDispose]() {
        if (lingerMs > 0) setTimeout(() => void clearAll(), lingerMs).unref()
        else await clearAll()
      },
    }
  }

  /** Whether the path is a workspace of the server's own, or of an engine. */
  const isWorkspace = (folder: string): boolean =>
    dirname(folder) === root || /^[\w-]+\/out\/[^/]+$/.test(relative(root, folder))

  return {
    make,
    makeFor,
    /**
     * Opens what an engine says that it made: a regular file with one name, directly in a workspace, of at most `most`
     * bytes. No link is followed and nothing that is not a file is waited for. Throws Failure `worker_error`.
     */
    async open(path: string, most: number) {
      const name = basename(path)
      const folder = dirname(path)
      const elsewhere = () => untrue(name, 'it does not lie in the folder of its job')
      if (!isWorkspace(folder) || join(folder, name) !== path) throw elsewhere()
      // The engine can exchange the folder for a link at any time, so the file is opened by way of the open folder.
      await using directory = await open(folder, constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(() => {
        throw elsewhere()
      })
      const file = await open(
        `/proc/self/fd/${directory.fd}/${name}`,
        constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
      ).catch((cause: NodeJS.ErrnoException) => {
        throw untrue(name, cause.code === 'ELOOP' ? 'it is a link' : 'it cannot be read')
      })
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

/** Never rejects. */
async function clear(path: string, log: Log): Promise<void> {
  try {
    await removeTree(path)
  } catch (cause) {
    log.warn('A folder of a job could not be removed', { folder: path }, cause)
  }
}
