import { broken, fine, type InspectionFinding, warning } from '../../core/inspection.ts'
import type { SlurmPool } from '../../core/models/pools.ts'
import { refusalIn } from '../launcher/slurm/commands.ts'
import { cardsIn } from '../launcher/slurm/node-lines.ts'
import { tooManyAsked } from './pool-findings.ts'
import type { Trial } from './trial-launch.ts'
import type { NodeReport } from './trial-server.ts'

/** What doctor says of what the commands of Slurm print. Pure. */

/** The arguments of sinfo that list the partitions with their state and their longest time. */
export const partitionArguments = (partition: string | undefined): string[] => [
  '--noheader',
  ...(partition === undefined ? [] : [`--partition=${partition}`]),
  '--format=%P|%a|%l',
]

/** The partition of the pool, by what sinfo prints for `partitionArguments`. */
export function partitionFinding(text: string, { partition, time_limit }: SlurmPool): InspectionFinding {
  const lines = text.split('\n').flatMap(line => {
    const [name = '', state = '', longest = ''] = line.trim().split('|')
    return name === '' ? [] : [{ name, state, longestMs: durationIn(longest), longest }]
  })
  // The default partition has a star.
  const found = partition === undefined ? lines.filter(({ name }) => name.endsWith('*')) : lines
  const [first] = found
  if (!first)
    return partition === undefined
      ? broken(
          'partition',
          'the cluster has no default partition',
          "Set 'partition' of the pool to one that sinfo lists.",
        )
      : broken(
          'partition',
          `the cluster has no partition '${partition}'`,
          "Correct 'partition' of the pool: sinfo lists those that there are.",
        )
  const names = [...new Set(found.map(({ name }) => name.replace('*', '')))].join(', ')
  if (found.every(({ state }) => state !== 'up'))
    return broken(
      'partition',
      `${names} takes no jobs now (${first.state})`,
      "Wait until an administrator opens it, or set another 'partition' of the pool.",
    )
  const longestMs = Math.max(...found.map(one => one.longestMs))
  if (time_limit !== undefined && time_limit > longestMs)
    return broken(
      'partition',
      `${names} allows ${first.longest} for a job, and the pool asks for more`,
      "Lower 'time_limit' of the pool: such jobs would wait for ever.",
    )
  return fine('partition', `${names} takes jobs${longestMs === Number.POSITIVE_INFINITY ? '' : ` of ${first.longest}`}`)
}

/** Milliseconds of a time of Slurm such as `1-00:30:00` or `30:00`; infinite where there is no limit. */
function durationIn(text: string): number {
  const [, days = '0', clock = ''] = /^(?:(\d+)-)?([\d:]+)$/.exec(text) ?? []
  if (clock === '') return Number.POSITIVE_INFINITY
  const seconds = clock.split(':').reduce((sum, part) => sum * 60 + Number(part), 0)
  return (Number(days) * 86_400 + seconds) * 1_000
}

/** The GPUs of the pool, by what sinfo prints for `nodeArguments`; `needed`: those of its largest engine. */
export function cardsFinding(text: string, { gres, card_memory }: SlurmPool, needed: number): InspectionFinding {
  const { devices, unusable } = cardsIn(text, gres, card_memory)
  const without = unusable.length === 0 ? '' : `; these nodes take no jobs: ${unusable.join(', ')}`
  if (devices.length === 0)
    return broken(
      'GPUs',
      `no node has the generic resource '${gres}'${without}`,
      "Correct 'gres' of the pool. This lists what nodes have: sinfo --Node --format='%N %G'",
    )
  const counts = new Map<string, number>()
  for (const { id } of devices) {
    const node = id.replace(/\/gpu\d+$/, '')
    counts.set(node, (counts.get(node) ?? 0) + 1)
  }
  const most = Math.max(...counts.values())
  const detail = `${devices.length} of '${gres}' on ${counts.size} ${counts.size === 1 ? 'node' : 'nodes'}${without}`
  if (needed > most) return tooManyAsked(detail, needed, most)
  return unusable.length === 0
    ? fine('GPUs', detail)
    : warning('GPUs', detail, 'Ask an administrator of the cluster about these nodes: sinfo --list-reasons')
}

/** Whether Slurm would accept a job of the pool, by what `sbatch --test-only` has answered. */
export function jobFinding({ ok, fault }: { ok: boolean; fault: string }, cards: number): InspectionFinding {
  const asked = cards === 0 ? 'a job without GPUs' : `a job with ${cards} ${cards === 1 ? 'GPU' : 'GPUs'}`
  if (ok) return fine('job', `Slurm accepts ${asked}`)
  return broken(
    'job',
    `Slurm refuses ${asked}: ${refusalIn(fault)}`,
    "Correct 'partition', 'account', 'qos', 'constraint', 'gres', 'time_limit' or 'extra' of the pool: sacctmgr show associations user=$USER lists the accounts that you may use.",
  )
}

/** The program of Slurm that starts the parts of an engine on its other nodes. */
export const spanning = 'srun'

/**
 * What a trial job has shown. `sharesData`: whether its node has written to the data directory; `programs`: what models of the pool
 * need on PATH there.
 */
export function trialFindings(
  trial: Trial,
  sharesData: boolean,
  programs: readonly string[] = [],
): InspectionFinding[] {
  if (trial.state === 'waiting')
    return [
      warning(
        'trial job',
        `it has not answered in time, so its node was not tested. ${trial.reason}`,
        'Try it again when the cluster has room.',
      ),
    ]
  if (trial.state === 'failed')
    return [
      broken(
        'trial job',
        trial.reason.replace(/\.$/, ''),
        'Nodes need Python 3.6 or later and scontrol, and their ports must be reachable from here. sacct and the log of slurmd say more.',
      ),
    ]
  const { python, missing: lacking } = JSON.parse(trial.body) as NodeReport
  const node = trial.node ?? 'its node'
  const missing = lacking.filter(name => !programs.includes(name))
  return [
    fine('trial job', `${node} has answered over TLS, with Python ${python}`),
    ...programs.map(name =>
      lacking.includes(name)
        ? broken(
            name,
            `not on PATH on ${node}, and models with 'nodes' need it there`,
            'Install the client of Slurm on the nodes (Debian: slurm-client), or add its folder to PATH of the server.',
          )
        : fine(name, `on PATH on ${node}, for models with 'nodes'`),
    ),
    missing.length === 0
      ? fine('files there', `${node} has the models and programs that infer.yaml names by path`)
      : broken(
          'files there',
          `${node} does not have ${missing.join(', ')}`,
          'Put them on a folder that all nodes share, under the same path as here.',
        ),
    sharesData
      ? fine('data directory', `${node} shares it, so the output of engines is seen`)
      : warning(
          'data directory',
          `${node} does not share it, so nobody sees what engines print there`,
          'Put the data directory on a folder that the nodes share, if you want to read it: infer serve --data-dir',
        ),
  ]
}
