import { constants } from 'node:fs'
import { copyFile, link, mkdir, mkdtemp, open, opendir, readdir, realpath } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { Failure } from '../failure.ts'
import { isId } from '../ids.ts'
import type { Log } from '../log.ts'
import { removeTree } from './remove-tree.ts'

/** The two folders below `work` in the data directory that an engine and the server share while it runs. */
export interface EngineFolders {
  /** Contains both. */
  parent: string
  /** Files of requests. The engine only reads them. */
  inputs: string
  /** Has a folder for each job, into which the engine writes. */
  outputs: string
}

/**
 * Returns where an engine finds the files of its requests and writes its results. A sandbox gives the engine these two
 * folders and no other part of the data directory. They must exist before the engine starts, because a sandbox cannot be
 * changed later.
 */
export function engineFolders(work: string, engineId: string): EngineFolders {
  if (!/^[\w-]{1,64}$/.test(engineId)) throw new Error(`'${engineId}' is not the id of an engine`)
  const parent = join(work, engineId)
  return { parent, inputs: join(parent, 'in'), outputs: join(parent, 'out') }
}

/** The folder of all workspaces. */
export const workFolder = (dataDir: string): string => join(dataDir, 'work')

/** A folder of one run of a job. Disposing of it removes the folder. */
export interface Workspace extends AsyncDisposable {
  /** Absolute. */
  folder: string
  /** Delays the removal by `ms` milliseconds after the disposal, because an engine may still write to the folder. */
  linger(ms: number): void
}

/** A workspace that an engine can access from its sandbox. */
export interface EngineWorkspace extends Workspace {
  /** Makes a stored file readable for the engine. Resolves with the path at which the engine finds it. */
  share(path: string): Promise<string>
}

const unusable = (name: string, why: string) =>
  new Failure('worker_error', `The engine reported the file '${name.slice(0, 64)}', but ${why}.`)

/**
 * Opens the folder of all workspaces and removes the workspaces that an earlier server left. The folders of the engines
 * `kept` stay and are only emptied, because those engines still use them; with `all` nothing is touched, because that server
 * still runs.
 */
export async function openWorkspaces(parent: string, log: Log, kept: ReadonlySet<string> | 'all' = new Set()) {
  await mkdir(parent, { recursive: true, mode: 0o700 })
  for await (const { name } of kept === 'all' ? [] : await opendir(parent)) {
    if (!(kept as ReadonlySet<string>).has(name)) await clear(join(parent, name), log)
    else for (const shared of ['in', 'out']) await empty(join(parent, name, shared), log)
  }
  const root = await realpath(parent)

  async function make(jobId: string): Promise<Workspace> {
    return disposable([await folderOf(root, jobId)])
  }

  /** Creates a workspace for a job that this engine runs. */
  async function makeFor(jobId: string, engineId: string): Promise<EngineWorkspace> {
    const { inputs, outputs } = engineFolders(root, engineId)
    for (const folder of [inputs, outputs]) await mkdir(folder, { recursive: true, mode: 0o700 })
    const [folder, shared] = [await folderOf(outputs, jobId), await folderOf(inputs, jobId)]
    return {
      ...disposable([folder, shared]),
      async share(path) {
        const at = join(shared, basename(path))
        // A hard link needs no copy, and the sandbox binds this folder read-only.
        await link(path, at).catch(() => copyFile(path, at, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE))
        return at
      },
    }
  }

  async function folderOf(within: string, jobId: string): Promise<string> {
    if (!isId(jobId)) throw new Error('the id of a workspace must be the id of a job')
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
      // If the server stops before, the next start removes the folder.
      async [Symbol.asyncDispose]() {
        if (lingerMs > 0) setTimeout(() => void clearAll(), lingerMs).unref()
        else await clearAll()
      },
    }
  }

  /** Whether the path is a workspace of the server itself or of an engine. */
  const isWorkspace = (folder: string): boolean =>
    dirname(folder) === root || /^[\w-]+\/out\/[^/]+$/.test(relative(root, folder))

  return {
    make,
    makeFor,
    /**
     * Opens a file that an engine reported: a regular file without further hard links, directly in a workspace, of at most
     * `maxBytes`. Follows no link and never blocks on a pipe or device. Rejects with Failure `worker_error`.
     */
    async open(path: string, maxBytes: number) {
      const name = basename(path)
      const folder = dirname(path)
      const outside = () => unusable(name, 'it is not in the folder of its job')
      if (!isWorkspace(folder) || join(folder, name) !== path) throw outside()
      // The engine can replace the folder by a link at any time, so the file is opened through the open folder.
      await using directory = await open(folder, constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(() => {
        throw outside()
      })
      const file = await open(
        `/proc/self/fd/${directory.fd}/${name}`,
        constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
      ).catch((cause: NodeJS.ErrnoException) => {
        throw unusable(name, cause.code === 'ELOOP' ? 'it is a link' : 'it cannot be read')
      })
      try {
        const facts = await file.stat()
        if (!facts.isFile()) throw unusable(name, 'it is not a regular file')
        if (facts.nlink !== 1) throw unusable(name, 'it has further hard links')
        if (facts.size === 0) throw unusable(name, 'it is empty')
        if (facts.size > maxBytes) throw unusable(name, `it is larger than ${maxBytes} bytes, the maximum of a job`)
        return file
      } catch (thrown) {
        await file.close()
        throw thrown
      }
    },
  }
}

async function empty(folder: string, log: Log): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) await clear(join(folder, name), log)
}

/** Never rejects. */
async function clear(path: string, log: Log): Promise<void> {
  try {
    await removeTree(path)
  } catch (cause) {
    log.warn('A folder of a job could not be removed', { folder: path }, cause)
  }
}
