import { isAbsolute } from 'node:path'
import type { SlurmPool } from '../../../core/models/pools.ts'
import { findProgram } from '../../sandbox/program.ts'
import type { LaunchOptions } from '../launcher.ts'

/** Why an engine cannot run in a job, as a sentence; undefined if it can. `path`: where its node looks for programs. */
export function refusalOf(
  { modelId, argv, channel, headers = [], env, sandbox }: LaunchOptions,
  { extra }: Pick<SlurmPool, 'extra'>,
  path: string,
): string | undefined {
  // A name is looked up here, where a mistake is told at once; a path may exist on the nodes alone.
  const program = argv[0] ?? ''
  if (!isAbsolute(program) && !findProgram(program, path))
    return `The program '${program}' that runs '${modelId}' is not on PATH here. If only the nodes have it, set 'command' with its absolute path.`
  if (sandbox.required && sandbox.level !== 'none')
    return `The sandbox '${sandbox.level}' of '${modelId}' cannot be enforced on the nodes of a cluster. Change 'sandbox' in infer.yaml, or let another pool run it.`
  if (channel === 'port' && !isTold(headers, env) && !extra.some(option => /^--exclusive(=user)?$/.test(option)))
    return `'${modelId}' runs on an engine that listens on a port and has no key, so other users of its node could call it. Let a custom 'command' listen on {socket}, or add '--exclusive' to 'extra' of the pool.`
  return undefined
}

/** Whether the engine is told the key that requests to it have: another one cannot ask for it. */
const isTold = (headers: readonly string[], env: LaunchOptions['env']): boolean =>
  headers.some(header => header.startsWith('Bearer ') && Object.values(env).includes(header.slice('Bearer '.length)))
