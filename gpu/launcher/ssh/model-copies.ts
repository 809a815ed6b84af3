import { Failure } from '../../../core/failure.ts'
import type { LaunchOptions } from '../launcher.ts'
import type { Link, Linked } from './link.ts'
import { copyFiles, copyPath, findScript, type ModelFiles, modelFilesAt, pathsOf } from './model-files.ts'
import type { OwnProgram } from './portable-launch.ts'

/** Where the files of a launch are on the other machine, by their path on this one, and those that are not there. */
export interface FoundFiles {
  files: ReadonlyMap<string, string>
  missing: readonly ModelFiles[]
}

/** A copy in progress, which launches of the same model share. */
interface Copy {
  done: Promise<void>
  bytes: () => number
}

/**
 * Brings files of models to another machine, each once: those that are there at the same path with the same size are used,
 * others are copied to a cache.
 */
export function openModelCopies(link: Pick<Link, 'now' | 'next'>, own: OwnProgram, node: string) {
  const copies = new Map<string, Copy>()

  async function find(launch: LaunchOptions, signal: AbortSignal, linked: Linked = link.now()): Promise<FoundFiles> {
    const files = new Map<string, string>()
    const missing: ModelFiles[] = []
    for (const path of pathsOf(launch, own)) {
      const here = await modelFilesAt(path)
      signal.throwIfAborted()
      const copy = here && copyPath(linked.connection.box.cache, here)
      if (!here || copy === undefined) continue
      const { exitCode, stdout } = await linked.connection.run(findScript([path, copy], here.bytes))
      if (exitCode !== 0) throw new Error(`'${node}' did not say whether it has ${path}.`)
      if (stdout.endsWith(copy)) files.set(path, copy)
      else if (!stdout.endsWith(path)) missing.push(here)
    }
    return { files, missing }
  }

  /** Copies one file or folder, or waits for the copy in progress. */
  async function copyOne(files: ModelFiles, { connection }: Linked, show: (text: () => string) => void): Promise<void> {
    let copy = copies.get(files.identity)
    if (!copy) {
      const started: Copy = { bytes: () => 0, done: Promise.resolve() }
      const progress = (bytes: () => number) => (started.bytes = bytes)
      const to = copyPath(connection.box.cache, files)
      started.done = copyFiles(files, to, (script, input) => connection.start(script, input), progress).finally(() =>
        copies.delete(files.identity),
      )
      copies.set(files.identity, started)
      copy = started
    }
    const { bytes, done } = copy
    show(() => {
      const copied = copy.bytes === bytes && files.isFolder ? '' : `${gigabytes(copy.bytes())} of `
      return `${files.path} is being copied to '${node}': ${copied}${gigabytes(files.bytes)}.`
    })
    await done
  }

  return {
    find,
    /** Copies what is missing. Starts anew after a lost connection. Rejects with Failure `worker_error`. */
    async copy(
      launch: LaunchOptions,
      signal: AbortSignal,
      show: (text: () => string) => void,
    ): Promise<ReadonlyMap<string, string>> {
      for (;;) {
        const linked = await link.next(signal)
        try {
          const found = await find(launch, signal, linked)
          const [first] = found.missing
          if (!first) return found.files
          await copyOne(first, linked, show)
          signal.throwIfAborted()
        } catch (thrown) {
          signal.throwIfAborted()
          if (await isOver(linked)) continue
          throw new Failure('worker_error', 'The files of the model could not be copied.', {
            engineText: (thrown as Error).message,
          })
        }
      }
    },
  }
}

/** Whether the connection has ended, which is noticed a moment after what was done over it has failed. */
const isOver = ({ connection }: Linked): Promise<boolean> =>
  Promise.race([
    connection.ended.then(() => true),
    new Promise<boolean>(resolve => void setTimeout(resolve, 1_000, false).unref()),
  ])

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`
