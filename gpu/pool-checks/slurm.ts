import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'
import { broken, fine, type InspectionFinding } from '../../core/inspection.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import type { Model } from '../../core/models/model.ts'
import { poolsOf, type SlurmPool } from '../../core/models/pools.ts'
import { nodesOf } from '../../core/models/spanned-nodes.ts'
import { launchNeeds } from '../launcher/launch-needs.ts'
import { openCommands } from '../launcher/slurm/commands.ts'
import { nodeArguments } from '../launcher/slurm/node-lines.ts'
import { openSlurmLauncher } from '../launcher/slurm/slurm.ts'
import { submitArguments } from '../launcher/slurm/submission.ts'
import { findProgram } from '../sandbox/program.ts'
import type { PoolCheckOptions } from './check-pool.ts'
import {
  cardsFinding,
  jobFinding,
  partitionArguments,
  partitionFinding,
  spanning,
  trialFindings,
} from './slurm-findings.ts'
import { tryLaunch } from './trial-launch.ts'
import { trialServer } from './trial-server.ts'

/** Milliseconds in which a trial job must have answered, and the longest that Slurm lets it run. */
const trialMs = 60_000
const longestTrialMs = 5 * 60_000

/**
 * Checks a pool of Slurm: the commands here, the cluster, the partition, the GPUs, whether a job would be accepted, and by a
 * short job without GPUs whether a node can be used and reached. Never throws.
 */
export async function* checkSlurmPool(options: PoolCheckOptions<SlurmPool>): AsyncGenerator<InspectionFinding> {
  const { pool, settings, models, environment } = options
  const commands = ['sbatch', 'squeue', 'scancel', 'scontrol', 'sinfo']
  const missing = commands.filter(name => !findProgram(name, environment.PATH ?? ''))
  if (missing.length > 0)
    return yield broken(
      'Slurm commands',
      `not on PATH here: ${missing.join(', ')}`,
      'Install the client of Slurm (Debian: slurm-client) in the version of the cluster, or start infer on a login node.',
    )
  yield fine('Slurm commands', commands.map(name => findProgram(name, environment.PATH ?? '')).join(', '))

  const run = openCommands(environment)
  const ask = (program: 'sbatch' | 'sinfo', args: readonly string[], input?: string) =>
    run(program, args, AbortSignal.timeout(30_000), input)
  const partitions = await ask('sinfo', partitionArguments(settings.partition))
  if (!partitions.ok)
    return yield broken(
      'cluster',
      `sinfo fails: ${partitions.fault.replace(/\.$/, '')}`,
      'Ask an administrator whether slurmctld runs: scontrol ping',
    )
  yield partitionFinding(partitions.stdout, settings)

  const largest = Math.max(1, ...models.map(({ devices }) => (typeof devices === 'number' ? devices : 1)))
  const nodes = await ask('sinfo', nodeArguments(settings.partition))
  yield cardsFinding(nodes.stdout, settings, largest)

  const maxMs =
    Math.max(0, ...models.map(model => poolsOf(model).find(use => use.pool === pool)?.timeLimit ?? 0)) || null
  const args = submitArguments(settings, launchNeeds(largest, 0, maxMs), { serverId: 'doctor', launchId: 'doctor' })
  yield jobFinding(await ask('sbatch', ['--test-only', ...args], '#!/bin/sh\n'), largest)
  yield* tryNode(options)
}

/** Runs a short job by the launcher itself, so that everything is tried that an engine needs. */
async function* tryNode({ pool, settings, models, environment, dataDir, log }: PoolCheckOptions<SlurmPool>) {
  // In the data directory, if there is one: a node that shares it writes there.
  const folder = mkdtempSync(join(existsSync(dataDir) ? dataDir : tmpdir(), 'doctor-'))
  try {
    const short = { ...settings, time_limit: longestTrialMs, orphan_grace: trialMs }
    const serverId = basename(folder).toLowerCase()
    const launcher = await openSlurmLauncher({
      pool,
      settings: short,
      dataDir: folder,
      serverId,
      host: environment,
      log,
    })
    const programs = models.some(model => nodesOf(model) > 1) ? [spanning] : []
    const needed = [...pathsOf(settings, models), ...programs]
    const argv = ['/usr/bin/env', 'python3', '-c', trialServer, '{socket}', ...needed]
    const trial = await tryLaunch(launcher, {
      argv,
      needs: { ...launchNeeds(0, 0, null), cpus: 1, memoryBytes: 2 ** 28 },
      limitMs: trialMs,
    })
    const output = join(folder, 'slurm', pool, 'output')
    const sharesData = existsSync(output) && readdirSync(output).length > 0
    await launcher.close()
    yield* trialFindings(trial, sharesData, programs)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What the models of the pool need on a node and name by a path. */
function pathsOf({ executable }: SlurmPool, models: readonly Model[]): string[] {
  const named = models.flatMap(({ engine, source, command }) => [
    source,
    command?.[0],
    engineFacts(engine).isBuiltIn ? executable : undefined,
  ])
  return [...new Set(named.filter(path => path !== undefined && isAbsolute(path)))] as string[]
}
