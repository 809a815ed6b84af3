import { Failure } from '../../../core/failure.ts'
import type { LaunchOptions } from '../launcher.ts'

/** The program infer on one machine: how it is started, and the files that it reads. */
export interface OwnProgram {
  command: readonly string[]
  files: readonly string[]
}

/** That program on the machine of an engine. */
interface ProgramThere extends OwnProgram {
  /** Variables of its engines with paths of that machine. */
  env: Readonly<Record<string, string>>
  /** Folders of the backend by which it uses the GPUs; none if there is no such backend. */
  backend: readonly string[]
}

/** Stands for the program infer of the machine on which an engine runs. */
const program = '{infer}'
/** Stands for the folder of the backend of the built-in engine there. */
export const backendThere = '{backend}'

/**
 * The launch without paths of this machine's own program and data directory, for another machine; `files`: where that
 * has the files that the engine reads. `{outputs}` is a folder there, whose files are fetched over HTTP. Pure.
 */
export function portableLaunch(
  options: LaunchOptions,
  { own, dataDir, files }: { own: OwnProgram; dataDir: string; files: ReadonlyMap<string, string> },
): LaunchOptions {
  const { argv, sandbox, env } = options
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

/** The launch with the program infer of this machine and its backend. Throws Failure `worker_error` without one. Pure. */
export function locatedLaunch(options: LaunchOptions, own: ProgramThere): LaunchOptions {
  const isOwn = options.argv[0] === program
  const [folder] = own.backend
  if (folder === undefined && options.argv.includes(backendThere))
    throw new Failure('worker_error', 'The built-in engine of that machine can use its GPUs no more.')
  const here = new Map([
    [program, own.files],
    [backendThere, own.backend],
  ])
  return {
    ...options,
    argv: options.argv.flatMap((part, at) =>
      at === 0 && isOwn ? own.command : [part === backendThere ? (folder ?? part) : part],
    ),
    env: isOwn ? { ...options.env, ...own.env } : options.env,
    sandbox: { ...options.sandbox, read: options.sandbox.read.flatMap(path => here.get(path) ?? [path]) },
  }
}
