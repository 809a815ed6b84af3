import { join } from 'node:path'

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
