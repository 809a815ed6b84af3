import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { type SnapshotFiles, snapshotFilesOf } from '../../../core/models/hub/snapshot.ts'
import type { LaunchOptions } from '../launcher.ts'
import { fetchWords, findHubScript, followFetch, hubFolders } from './hub-files.ts'
import type { Link, Linked } from './link.ts'
import { copyFiles, copyPath, findScript, type ModelFiles, modelFilesAt, pathsOf } from './model-files.ts'
import type { OwnProgram } from './portable-launch.ts'
import { quoted } from './ssh-command.ts'

/** Where the files of a launch are on the other machine, by their path on this one, and those that are not there. */
export interface FoundFiles {
  files: ReadonlyMap<string, string>
  missing: readonly MissingFiles[]
}

/** `hub`: which files of which repository they are, where the machine can download them itself. */
interface MissingFiles extends ModelFiles {
  hub: SnapshotFiles | undefined
}

/** A copy or download in progress, which launches of the same model share. */
interface Copy {
  done: Promise<void>
  /** How far it is, as a sentence. */
  text: () => string
}

/** How often a machine is let download the same files before they are copied: a download resumes after a lost connection. */
const mostFetches = 3

/**
 * Brings files of models to another machine, each once: those that are there at the same path with the same size are used;
 * those of a hub the machine downloads itself, if it can; others are copied to a cache. `hubEndpoint`: the hub of this
 * server, if it is not the usual one.
 */
export function openModelCopies(
  link: Pick<Link, 'now' | 'next'>,
  own: OwnProgram,
  { node, hubEndpoint, log }: { node: string; hubEndpoint: string | undefined; log: Log },
) {
  const copies = new Map<string, Copy>()
  const fetches = new Map<string, number>()

  async function find(launch: LaunchOptions, signal: AbortSignal, linked: Linked = link.now()): Promise<FoundFiles> {
    const files = new Map<string, string>()
    const missing: MissingFiles[] = []
    for (const path of pathsOf(launch, own)) {
      const here = await modelFilesAt(path)
      signal.throwIfAborted()
      if (!here) continue
      const { cache } = linked.connection.box
      const hub = await snapshotFilesOf(path, launch.argv)
      const paths = [...(hub ? hubFolders(cache, path) : [path]), copyPath(cache, here)]
      const script = hub ? findHubScript(paths, hub) : findScript(paths, here.bytes)
      const { exitCode, stdout } = await linked.connection.run(script)
      if (exitCode !== 0) throw new Error(`'${node}' did not say whether it has ${path}.`)
      const found = paths.toSorted((a, b) => b.length - a.length).find(one => stdout.endsWith(one))
      if (found === undefined) missing.push({ ...here, hub })
      else if (found !== path) files.set(path, found)
    }
    return { files, missing }
  }

  /** Lets the machine download files of a hub. Returns whether it has done so. */
  async function fetchThere(hub: SnapshotFiles, { connection, program }: Linked, copy: Copy): Promise<boolean> {
    const total = hub.files.reduce((sum, { bytes }) => sum + bytes, 0)
    let now = 0
    copy.text = () => `'${node}' downloads ${hub.repository}: ${gigabytes(now)} of ${gigabytes(total)}.`
    try {
      const words = fetchWords(program, connection.box.cache, hub, hubEndpoint)
      await followFetch(connection.start(`exec ${words.map(quoted).join(' ')}`), bytes => (now = bytes))
      return true
    } catch (thrown) {
      const fields = { machine: node, repository: hub.repository, reason: (thrown as Error).message }
      log.info('A machine cannot download a model itself, so it is copied', fields)
      return false
    }
  }

  async function bring(files: MissingFiles, linked: Linked, copy: Copy): Promise<void> {
    const { identity, hub, path, isFolder } = files
    const tried = fetches.get(identity) ?? 0
    fetches.set(identity, tried + 1)
    if (hub && tried < mostFetches && (await fetchThere(hub, linked, copy))) return
    const progress = (bytes: () => number) => {
      copy.text = () => `${path} is being copied to '${node}': ${gigabytes(bytes())} of ${gigabytes(files.bytes)}.`
    }
    // How far a folder is nobody knows.
    if (isFolder) copy.text = () => `${path} is being copied to '${node}': ${gigabytes(files.bytes)}.`
    const { connection } = linked
    const start = (...command: Parameters<typeof connection.start>) => connection.start(...command)
    await copyFiles(files, copyPath(connection.box.cache, files), start, progress)
  }

  /** Brings one file or folder, or waits for what is in progress. */
  async function bringOnce(files: MissingFiles, linked: Linked, show: (text: () => string) => void): Promise<void> {
    let copy = copies.get(files.identity)
    if (!copy) {
      const started: Copy = { done: Promise.resolve(), text: () => `${files.path} is being copied to '${node}'.` }
      started.done = bring(files, linked, started).finally(() => copies.delete(files.identity))
      copies.set(files.identity, started)
      copy = started
    }
    const { done } = copy
    show(() => copy.text())
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
          await bringOnce(first, linked, show)
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
