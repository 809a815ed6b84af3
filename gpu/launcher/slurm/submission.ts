import type { SlurmPool } from '../../../core/models/pools.ts'
import type { LaunchKey } from '../launch-key.ts'
import type { LaunchNeeds } from '../launcher.ts'
import { jobComment, jobName } from './queue-lines.ts'

/** What the wrapper on the node is told, inside of its script: arguments and comments of jobs can be read by everybody. */
export interface WrapperSettings extends LaunchKey {
  argv: readonly string[]
  env: Readonly<Record<string, string>>
  channel: 'port' | 'socket'
  cards: number
  /** The comment of the job, to which it appends. */
  comment: string
  orphanSeconds: number
  dataDirectory: string
  /** A file of the server with the text `nonce`: a node that reads it shares the data directory. */
  marker: string
  nonce: string
  /** Where a node that shares the data directory writes the output, and the folders of the engine. */
  log: string
  home: string
  outputs: string
  /** Nodes that the engine spans, and further arguments of its command on all but the first. */
  nodes: number
  others: readonly string[]
}

/** Slurm cannot warn of the end of a shorter job in time, milliseconds. */
const shortestWarnedMs = 5 * 60_000
const minuteMs = 60_000

/** Milliseconds of the time limit of a launch; null if it has none of its own. */
const limitOf = ({ time_limit }: SlurmPool, { maxMs }: LaunchNeeds): number | null =>
  time_limit === undefined ? maxMs : Math.min(time_limit, maxMs ?? Number.POSITIVE_INFINITY)

/** Whether the wrapper is told before the time limit ends: 60 s before, and up to 60 s earlier. */
export function isWarned(settings: SlurmPool, needs: LaunchNeeds): boolean {
  const limitMs = limitOf(settings, needs)
  return limitMs === null || limitMs >= shortestWarnedMs
}
/** Milliseconds before the end of a job at which a wrapper that is warned may end its engine. */
export const warnedMs = 2 * minuteMs

/** Nodes that the options of the pool exclude. */
export const excludedIn = ({ extra }: Pick<SlurmPool, 'extra'>): string[] =>
  extra.flatMap(option => /^--exclude=(.+)$/.exec(option)?.[1] ?? [])

/**
 * The arguments of sbatch for a launch, whose script comes from the standard input. `avoid`: nodes on which it must not run, as
 * Slurm names them.
 */
export function submitArguments(
  settings: SlurmPool,
  needs: LaunchNeeds,
  { serverId, launchId, avoid = [] }: { serverId: string; launchId: string; avoid?: readonly string[] },
): string[] {
  const { partition, account, qos, constraint, gres, extra } = settings
  const { cards, cpus, memoryBytes, nodes } = needs
  const limitMs = limitOf(settings, needs)
  const given = { partition, account, qos, constraint }
  const excluded = excludedIn({ extra })
  return [
    ...extra,
    '--parsable',
    '--export=NONE',
    // A launch runs once: after its end the server decides where the next one goes.
    '--no-requeue',
    `--nodes=${nodes}`,
    `--ntasks=${nodes}`,
    ...(nodes > 1 ? ['--ntasks-per-node=1'] : []),
    '--chdir=/',
    '--output=/dev/null',
    `--job-name=${jobName(serverId)}`,
    `--comment=${jobComment(serverId, launchId)}`,
    `--cpus-per-task=${Math.max(1, Math.ceil(cpus))}`,
    ...(memoryBytes > 0 ? [`--mem=${Math.ceil(memoryBytes / 2 ** 20)}M`] : []),
    // Of several such options the last one holds.
    ...(avoid.length > 0 ? [`--exclude=${[...excluded, ...avoid].join(',')}`] : []),
    ...(cards > 0 ? [`--gres=${gres}:${cards}`] : []),
    ...(limitMs === null ? [] : [`--time=${Math.max(1, Math.ceil(limitMs / minuteMs))}`]),
    ...(isWarned(settings, needs) ? ['--signal=B:USR1@60'] : []),
    ...Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
  ]
}

/** The command of an engine on the node: one that is this program, started as `self`, is the executable there. */
export const commandOnNode = (
  argv: readonly string[],
  self: readonly string[],
  executable: string | undefined,
): readonly string[] =>
  executable !== undefined && self.every((word, at) => argv[at] === word)
    ? [executable, ...argv.slice(self.length)]
    : argv

/**
 * The batch script of a launch: the wrapper, for several nodes what follows it there, and the settings. JSON is a string of
 * Python too.
 */
export function submitScript({ wrapper, nodes }: WrapperTexts, settings: WrapperSettings): string {
  const text = JSON.stringify(JSON.stringify(settings))
  return settings.nodes > 1
    ? `${wrapper.trimEnd()}\n\n\n${nodes.trimEnd()}\n\n\nmain(${text}, First)\n`
    : `${wrapper.trimEnd()}\n\n\nmain(${text})\n`
}

/** The files wrapper.py and nodes.py. */
export interface WrapperTexts {
  wrapper: string
  nodes: string
}

/** The id in what `sbatch --parsable` prints: `12`, or `12;cluster`; undefined if there is none. */
export const jobIdIn = (text: string): string | undefined => /^(\d+)(;\S+)?$/m.exec(text)?.[1]
