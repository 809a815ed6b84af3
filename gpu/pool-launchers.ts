import type { SlurmPool, SshPool } from '../core/models/pools.ts'
import { openSlurmLauncher } from './launcher/slurm/slurm.ts'
import { openSshLauncher } from './launcher/ssh/ssh.ts'
import type { OpenPoolLauncher, PoolLauncherOptions } from './pool-launches.ts'

/** Opens the launcher of a pool, by its kind. */
export const openPoolLauncher: OpenPoolLauncher = options =>
  options.settings.kind === 'slurm'
    ? openSlurmLauncher(options as PoolLauncherOptions<SlurmPool>)
    : openSshLauncher(options as PoolLauncherOptions<SshPool>)
