import { mkdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { engineFolders, workFolder } from '../../core/files/engine-folders.ts'
import type { LaunchOptions } from './launcher.ts'

type Named = Pick<LaunchOptions, 'engineId' | 'modelId'>

/**
 * The folders of engines in the data directory. A model has a home of its own, which stays: what one engine compiled and
 * keeps there is never run by the engine of another model.
 */
export function openLaunchFolders(dataDir: string) {
  const work = workFolder(dataDir)
  /** Folders that still held files of a job when their engine ended. */
  const left = new Set<string>()

  function removeEmpty(parent: string): void {
    for (const folder of [join(parent, 'in'), join(parent, 'out'), parent])
      try {
        rmdirSync(folder)
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') return void left.add(parent)
      }
    left.delete(parent)
  }

  return {
    make({ engineId, modelId }: Named): { home: string; inputs: string; outputs: string } {
      const { inputs, outputs } = engineFolders(work, engineId)
      // No id of a model has a plus sign, and none is part of another.
      const home = join(dataDir, 'home', modelId.replaceAll('/', '+'))
      for (const folder of [home, inputs, outputs]) mkdirSync(folder, { recursive: true, mode: 0o700 })
      return { home, inputs, outputs }
    },
    /** Removes what the engine shared with the server, now or when the last job has left it. The home stays. */
    release({ engineId }: Named): void {
      for (const parent of [...left, engineFolders(work, engineId).parent]) removeEmpty(parent)
    },
  }
}
