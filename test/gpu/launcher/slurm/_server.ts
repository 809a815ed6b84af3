import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFailed, onTestFinished } from 'vitest'
import { PoolSettings, type SlurmPool } from '../../../../core/models/pools.ts'
import type { Launch, Launcher, LaunchOptions } from '../../../../gpu/launcher/launcher.ts'
import { openSlurmLauncher } from '../../../../gpu/launcher/slurm/slurm.ts'
import { fetchHealth } from '../../../../gpu/requests/health.ts'
import { keptLog, launchOptions, temporary, until } from '../_launch.ts'
import type { Lab } from './_lab.ts'

export const slurmSettings = PoolSettings.parse({
  kind: 'slurm',
  time_limit: '1h',
  orphan_grace: '3s',
  card_memory: '80GiB',
}) as SlurmPool

/** A data directory and a name on the cluster. */
export interface SlurmServer {
  dataDir: string
  serverId: string
  /** The name of its pool, if not `lab`. */
  pool?: string
}

export const newServer = (): SlurmServer => ({ dataDir: temporary(), serverId: `srv-${randomUUID().slice(0, 8)}` })

/** Opens the launcher of a server; it is closed after the test. */
export async function openAt(
  lab: Lab,
  server: SlurmServer,
  changes: Partial<SlurmPool> = {},
  path = '',
): Promise<Launcher & { log: ReturnType<typeof keptLog> }> {
  const log = keptLog()
  const host = { ...lab.env, PATH: `${path}:${lab.env.PATH}` }
  const settings = { ...slurmSettings, ...changes }
  const launcher = await openSlurmLauncher({ pool: 'lab', settings, ...server, host, log })
  onTestFinished(() => launcher.close())
  return { ...launcher, log }
}

/** A fake engine that takes one card. */
export const slurmOptions = (launchId: string, flags: readonly string[], more: Partial<LaunchOptions> = {}) =>
  launchOptions(launchId, [...flags], {
    needs: { nodes: 1, cards: 1, cpus: 1, memoryBytes: 1 << 20, maxMs: null },
    ...more,
  })

/** Waits until the launch is listed like this. A list that fails is repeated. */
export async function listed(
  launcher: Launcher,
  launchId: string,
  holds: (launch: Launch) => boolean | Promise<boolean>,
): Promise<Launch> {
  let found: Launch | undefined
  let isOver = false
  // A cluster has many reasons to let a job wait.
  onTestFailed(() => {
    if (!isOver) process.stderr.write(`Waited for ${launchId}, which was ${JSON.stringify(found)}\n`)
  })
  await until(async () => {
    const all = await launcher.list(AbortSignal.timeout(20_000)).catch(() => [])
    found = all.find(one => one.launchId === launchId)
    return found !== undefined && (await holds(found))
  })
  isOver = true
  return found!
}

export const isReady = async ({ endpoint }: Launch): Promise<boolean> =>
  endpoint !== null && (await fetchHealth(endpoint, '/health', [], 2_000)).health === 'ready'

/** A folder with a squeue that fails while the file `fail` is there. */
export function failingSqueue(folder: string): { path: string; fail: string } {
  const fail = join(folder, 'fail')
  const script = `#!/bin/sh
[ -e '${fail}' ] && { echo 'squeue: error: Unable to contact slurm controller (connect failure)' >&2; exit 1; }
exec /usr/bin/squeue "$@"
`
  writeFileSync(join(folder, 'squeue'), script, { mode: 0o755 })
  return { path: folder, fail }
}
