import type { InspectionFinding } from '../../core/inspection.ts'
import type { Log } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import type { KubernetesPool, SlurmPool, SshPool } from '../../core/models/pools.ts'

/** A pool of a kind that has checks. */
export type CheckedPool = KubernetesPool | SlurmPool | SshPool

export interface PoolCheckOptions<Settings extends CheckedPool> {
  pool: string
  settings: Settings
  /** The enabled models that may use the pool. */
  models: readonly Model[]
  dataDir: string
  /** The environment in which the commands of the pool are found. */
  environment: Readonly<Record<string, string | undefined>>
  log: Log
}

/** Checks a pool, by its kind: a finding for each check, in order, until one makes the next pointless. */
export async function* checkPool(options: PoolCheckOptions<CheckedPool>): AsyncGenerator<InspectionFinding> {
  const { settings } = options
  if (settings.kind === 'ssh') {
    const { checkSshPool } = await import('./ssh.ts')
    yield* checkSshPool({ ...options, settings })
  } else if (settings.kind === 'kubernetes') {
    const { checkKubernetesPool } = await import('./kubernetes.ts')
    yield* checkKubernetesPool({ ...options, settings })
  } else {
    const { checkSlurmPool } = await import('./slurm.ts')
    yield* checkSlurmPool({ ...options, settings })
  }
}
