import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../../core/failure.ts'
import { engineFolders, workFolder } from '../../core/files/workspaces.ts'
import { withoutLocations } from '../../core/tasks/protocols/engine-text.ts'
import type { LaunchOptions } from './launcher.ts'

type Named = Pick<LaunchOptions, 'engineId' | 'modelId'>

/**
 * Manages the folders of engines in the data directory. Each model has a separate, persistent home, so that code
 * compiled by one model's engine is never run by the engine of another model.
 */
export function openLaunchFolders(dataDir: string) {
  const work = workFolder(dataDir)
  /** Folders that still held files of a job when their engine ended. */
  const remaining = new Set<string>()

  function removeEmpty(parent: string): void {
    for (const folder of [join(parent, 'in'), join(parent, 'out'), parent])
      try {
        rmdirSync(folder)
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') return void remaining.add(parent)
      }
    remaining.delete(parent)
  }

  return {
    make({ engineId, modelId }: Named): { home: string; inputs: string; outputs: string } {
      const { inputs, outputs } = engineFolders(work, engineId)
      // Model ids contain no plus sign and no model id is a prefix of another, so the names are unique.
      const home = join(dataDir, 'home', modelId.replaceAll('/', '+'))
      for (const folder of [home, inputs, outputs]) mkdirSync(folder, { recursive: true, mode: 0o700 })
      return { home, inputs, outputs }
    },
    /** Removes the folders shared with the server, or leaves them for a later call while they hold files of a job. */
    release({ engineId }: Pick<Named, 'engineId'>): void {
      for (const parent of [...remaining, engineFolders(work, engineId).parent]) removeEmpty(parent)
    },
  }
}

/** Runs what writes files of an engine. Throws Failure `worker_error` where it cannot: nothing was started. */
export function orUnwritable<Result>(modelId: string, write: () => Result): Result {
  try {
    return write()
  } catch (cause) {
    const why = `Cannot write the files of '${modelId}': ${(cause as Error).message}.`
    throw new Failure('worker_error', withoutLocations(why), { engineText: why })
  }
}
