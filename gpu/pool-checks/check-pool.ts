import { invalid } from '../../core/failure.ts'
import type { InspectionFinding } from '../../core/inspection.ts'
import type { Log } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import type { PoolSettings, SlurmPool, SshPool } from '../../core/models/pools.ts'

export interface PoolCheckOptions<Settings extends PoolSettings = PoolSettings> {
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
export async function* checkPool(options: PoolCheckOptions): AsyncGenerator<InspectionFinding> {
  switch (options.settings.kind) {
    case 'ssh': {
      const { checkSshPool } = await import('./ssh.ts')
      return yield* checkSshPool(options as PoolCheckOptions<SshPool>)
    }
    case 'slurm': {
      const { checkSlurmPool } = await import('./slurm.ts')
      return yield* checkSlurmPool(options as PoolCheckOptions<SlurmPool>)
    }
    case 'kubernetes':
      throw invalid(
        'pool',
        `Pools of the kind kubernetes are not checked: '${options.pool}' says in infer status and infer model plan what it lacks, and kubectl auth can-i what its service account may do.`,
      )
  }
}
