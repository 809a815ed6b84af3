import { Failure } from '../../../core/failure.ts'
import type { LaunchOptions } from '../launcher.ts'

/** The program infer on one machine: how it is started, and the files that it reads. */
export interface OwnProgram {
  command: readonly string[]
  files: readonly string[]
}

/** Stands for the program infer of the machine on which an engine runs. */
const program = '{infer}'

/**
 * The launch without paths of this machine's own program and data directory, for another machine; `files`: where that
 * has the files that the engine reads. Throws Failure `worker_error` for an engine that shares files with this server. Pure.
 */
export function portableLaunch(
  options: LaunchOptions,
  { own, dataDir, pool, files }: { own: OwnProgram; dataDir: string; pool: string; files: ReadonlyMap<string, string> },
): LaunchOptions {
  const { argv, modelId, sandbox, env } = options
  if (argv.some(part => part.includes('{outputs}'))) throw sharesFiles(modelId, pool)
  const isOwn = own.command.every((part, at) => argv[at] === part)
  const moved = (text: string): string => {
    let result = text
    for (const [from, to] of files) result = result.replaceAll(from, () => to)
    return result.replaceAll(`${dataDir}/`, () => '{data_directory}/')
  }
  const { INFER_CACHE_DIR: _ours, ...elsewhere } = env
  const reads = sandbox.read.filter(path => !own.files.includes(path))
  return {
    ...options,
    argv: isOwn ? [program, ...argv.slice(own.command.length).map(moved)] : argv.map(moved),
    env: isOwn ? elsewhere : env,
    sandbox: {
      ...sandbox,
      read: [...reads.map(moved), ...(reads.length < sandbox.read.length ? [program] : [])],
      write: sandbox.write.map(moved),
    },
  }
}

const sharesFiles = (modelId: string, pool: string) =>
  new Failure(
    'worker_error',
    `The engine of '${modelId}' exchanges files with this server, so it cannot run in the pool '${pool}'. Take the pool out of its 'pools' in infer.yaml.`,
  )

/** The launch with the program infer of this machine. Pure. */
export const locatedLaunch = (options: LaunchOptions, own: OwnProgram): LaunchOptions => ({
  ...options,
  argv: options.argv.flatMap((part, at) => (at === 0 && part === program ? own.command : [part])),
  sandbox: {
    ...options.sandbox,
    read: options.sandbox.read.flatMap(path => (path === program ? own.files : [path])),
  },
})
