import type { KubernetesPool, SlurmPool, SshPool } from '../core/models/pools.ts'
import type { OpenPoolLauncher, PoolLauncherOptions } from './pool-launches.ts'

/** Opens the launcher of a pool, by its kind. A server without pools loads none of them. */
export const openPoolLauncher: OpenPoolLauncher = async options => {
  if (options.settings.kind === 'ssh') {
    const { openSshLauncher } = await import('./launcher/ssh/ssh.ts')
    return await openSshLauncher(options as PoolLauncherOptions<SshPool>)
  }
  if (options.settings.kind === 'kubernetes') {
    const { openKubernetesLauncher } = await import('./launcher/kubernetes/kubernetes.ts')
    return await openKubernetesLauncher(options as PoolLauncherOptions<KubernetesPool>)
  }
  const { openSlurmLauncher } = await import('./launcher/slurm/slurm.ts')
  return await openSlurmLauncher(options as PoolLauncherOptions<SlurmPool>)
}
